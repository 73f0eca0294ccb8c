import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { deserialize, serialize } from 'node:v8';
import type { Kind, Value } from '../model/columns.ts';
import { ConfigError } from '../model/errors.ts';
import { type EvolvedColumn, evolvedStream, promote } from '../model/evolution.ts';
import type { Row } from '../model/flatten.ts';
import { toIso } from '../model/instant.ts';
import { onDisk } from '../model/io-errors.ts';
import { stringifyJson } from '../model/json.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import { GROUP_ROWS } from './files/layout.ts';
import { createSanitizer, UTF8_TEXT } from './merge-rule.ts';
import { type EncodedGroup, encodeFooter, encodeGroup, type FileColumn, MAGIC } from './parquet/format/index.ts';

export type RowFile = ReturnType<typeof createRowFile>;

/** The target of an export: a file that appears complete or not at all, or standard output. */
export interface ByteTarget {
  write(bytes: Uint8Array | string): Promise<void>;
  finish(): Promise<void>;
  abandon(): Promise<void>;
}

export const FORMATS = ['parquet', 'csv', 'ndjson'] as const;
export type Format = (typeof FORMATS)[number];

interface RowFileOptions {
  /** Columns of undeclared fields: the export gets them as the tables do. */
  evolved: readonly EvolvedColumn[];
  /** In CSV, does not escape cells that begin with = + - @, which spreadsheets run as formulas. */
  keepFormulas: boolean;
}

export function createRowFile(
  format: Format,
  name: StreamName,
  target: ByteTarget,
  { evolved, keepFormulas }: RowFileOptions,
) {
  const stream = evolvedStream(STREAMS[name], evolved);
  const columns = [
    ...stream.columns.map(({ name, kind, nullable }) => ({ name, kind, nullable })),
    { name: '_extra', kind: 'json', nullable: true } as const,
  ];
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const { header, encode, end } =
    format === 'parquet' ? asParquet(columns) : format === 'ndjson' ? asNdjson(columns) : asCsv(columns, keepFormulas);
  let isBegun = false;
  const send = async (pieces: Iterable<Piece> | AsyncIterable<Piece>): Promise<void> => {
    if (!isBegun && header.length > 0) await target.write(header);
    isBegun = true;
    for await (const piece of pieces) await target.write(piece);
  };
  return {
    write: (rows: readonly Row[]) => send(encode(sanitizer.all(promote(STREAMS[name], evolved, rows)))),
    async finish(metadata: Readonly<Record<string, string>>) {
      await send(end(metadata));
      await target.finish();
    },
    /** Removes the partial file. */
    abandon: () => target.abandon(),
  };
}

type Piece = Uint8Array | string;

interface Encoding {
  header: Piece;
  encode(rows: Iterable<readonly Value[]>): Iterable<Piece> | AsyncIterable<Piece>;
  end(metadata: Readonly<Record<string, string>>): Iterable<Piece> | AsyncIterable<Piece>;
}

const asText = (header: string, line: (values: readonly Value[]) => string): Encoding => ({
  header,
  *encode(rows) {
    const lines = Array.from(rows, (values) => `${line(values)}\n`);
    if (lines.length > 0) yield lines.join('');
  },
  end: () => [],
});

function asNdjson(columns: readonly FileColumn[]): Encoding {
  const shown = (value: Value, kind: Kind): string => {
    if (kind === 'json') return value === null ? 'null' : String(value);
    return stringifyJson(kind === 'timestamp' && typeof value === 'number' ? toIso(value) : value);
  };
  return asText('', (values) => {
    const fields = columns.map(({ name, kind }, i) => `${JSON.stringify(name)}:${shown(values[i] ?? null, kind)}`);
    return `{${fields.join()}}`;
  });
}

/** RFC 4180: commas, quotes where needed, a header line. An empty cell is null; an empty text is "". */
function asCsv(columns: readonly FileColumn[], keepFormulas: boolean): Encoding {
  const cell = (value: Value, kind: Kind): string => {
    if (value === null) return '';
    if (kind === 'timestamp' && typeof value === 'number') return toIso(value);
    const text = String(value);
    // Numbers and times cannot be formulas; only text can.
    const isText = kind === 'text' || kind === 'json';
    return quoted(isText && !keepFormulas && FORMULA.test(text) ? `'${text}` : text);
  };
  const header = `${columns.map(({ name }) => quoted(name)).join(',')}\n`;
  return asText(header, (values) => columns.map(({ kind }, i) => cell(values[i] ?? null, kind)).join(','));
}

/** The start of a spreadsheet formula, also in full-width characters, and after blanks or invisible characters. */
const FORMULA = /^[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u;

const quoted = (text: string): string =>
  text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

function asParquet(columns: readonly FileColumn[]): Encoding {
  const groups: EncodedGroup[] = [];
  let waiting: (readonly Value[])[] = [];
  const flush = async (): Promise<Uint8Array> => {
    const { bytes, ...group } = await encodeGroup(columns, waiting, 'zstd');
    waiting = [];
    groups.push(group);
    return bytes;
  };
  return {
    header: MAGIC,
    // A row group is in memory until it is full.
    async *encode(rows) {
      for (const values of rows) {
        waiting.push(values);
        if (waiting.length === GROUP_ROWS) yield await flush();
      }
    },
    async *end(metadata) {
      if (waiting.length > 0) yield await flush();
      yield encodeFooter(columns, groups, metadata);
    },
  };
}

/** A file that appears complete or not at all: it is written under another name and renamed at the end. */
export async function createFileTarget(path: string, { replace }: { replace: boolean }): Promise<ByteTarget> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isDirectory())
    throw new ConfigError(`--out ${path}: it is a folder`, { next: 'name a file, such as one in that folder' });
  if (found && !replace) {
    throw new ConfigError(`${path} exists already`, { next: 'choose another --out, or add --force to replace it' });
  }
  // An unpredictable name: in a shared folder, somebody else could have put a link or a file there.
  const partial = temporaryPath(path);
  const file = await openPartial(partial, path);
  return onDisk<ByteTarget>(path, {
    async write(bytes) {
      await file.write(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
    },
    async finish() {
      await file.sync();
      await file.close();
      await rename(partial, path);
    },
    async abandon() {
      await file.close();
      await rm(partial, { force: true });
    },
  });
}

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const temporaryPath = (path: string): string =>
  join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(8).toString('hex')}.partial`);

async function openPartial(partial: string, path: string): Promise<FileHandle> {
  try {
    return await open(partial, NEW_FILE);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `the folder ${dirname(path)} does not exist` : `it cannot be written (${code})`;
    throw new ConfigError(`--out ${path}: ${why}`, { next: 'choose another place', cause });
  }
}

/** Standard output, with backpressure. After the pipe is closed, writes are ignored. */
export function createStreamTarget(out: Writable): ByteTarget {
  let isGone = false;
  out.once('error', () => {
    isGone = true;
  });
  return {
    async write(bytes) {
      if (isGone || out.write(bytes)) return;
      await Promise.race([drained(out), finished(out).catch(() => {})]);
    },
    finish: async () => {},
    abandon: async () => {},
  };
}

const drained = (out: Writable): Promise<void> => new Promise((resolve) => void out.once('drain', () => resolve()));

/** Rows buffered on disk, to be read once in the order of writing. */
export type Spool = Awaited<ReturnType<typeof createSpool>>;

/** In the folder of the export, which has room for it. The file is unlinked while open, so that a killed export leaves none behind. */
export async function createSpool(beside: string) {
  const path = temporaryPath(beside);
  const file = await open(path, NEW_FILE, 0o600);
  await rm(path);
  const lengths: number[] = [];
  const disk = onDisk(beside, {
    async add(rows: readonly Row[]) {
      const bytes = serialize(rows);
      lengths.push(bytes.length);
      await file.write(bytes);
    },
    remove: () => file.close(),
  });
  return {
    ...disk,
    async *replay() {
      let position = 0;
      for (const length of lengths) {
        const { buffer } = await file.read(Buffer.alloc(length), 0, length, position);
        position += length;
        yield deserialize(buffer) as Row[];
      }
    },
  };
}
