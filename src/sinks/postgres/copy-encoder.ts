import { storableJson, storableText } from '../../cursor/database/sql.ts';
import type { Kind, Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import { stringifyJson } from '../../model/json.ts';
import { entitiesOf, type Stream } from '../../model/streams.ts';
import type { Sanitizer } from '../merge-rule.ts';

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const CHUNK_BYTES = 256 * 1024;
/** Most batches come from polls and have a few rows, which fit in one small chunk, and so in one write. */
const FIRST_CHUNK_BYTES = 16 * 1024;
const SHORT = 48;
/** Three bytes hold any UTF-16 unit. */
const MOST_BYTES = 3;
const JSONB_VERSION = 1;
const EPOCH_2000_MS = 946_684_800_000;

/**
 * Rows in Postgres' binary COPY format, in chunks, so that the server loads one while the next is encoded. Binary, because text COPY must
 * escape tabs, newlines, backslashes and `\.`, where a mistake silently ends the data; and because it loads twice as fast. Our own, because
 * pg-copy-streams-binary loads a quarter as many rows a second. Values must be storable in Postgres, JSON as text: see `merge-rule.ts`.
 */
export const encodeCopy = (kinds: readonly Kind[], rows: Iterable<readonly Value[]>): Generator<Buffer> =>
  encodeAll(rows, (writer, values) => void writer.row(kinds, values));

/** Texts are checked while they are copied, so that only rows that Postgres cannot store go through the sanitizer. */
export function encodeRows(stream: Stream, rows: Iterable<Row>, front: readonly string[], sanitizer: Sanitizer) {
  const kinds: Kind[] = stream.columns.map(({ kind }) => kind);
  const all: Kind[] = [...front.map(() => 'text' as const), ...kinds, 'json'];
  const joined = joinedEnds(stream);
  return encodeAll(rows, (writer, row) => {
    if (!writer.flatRow(kinds, joined, row, front)) writer.row(all, sanitizer.one(row, front));
  });
}

/** Runs of adjacent columns of a link or customer, after its id: the index of the first column maps to the end of the run. */
function joinedEnds(stream: Stream): number[] {
  const keys = entitiesOf(stream).map(({ key }) => key);
  const ends: number[] = [];
  stream.columns.forEach(({ name }, i, columns) => {
    const end = columns.findIndex((column, at) => at > i && !column.volatile);
    if (keys.includes(name)) ends[i + 1] = end < 0 ? columns.length : end;
  });
  return ends;
}

/** The encoded columns of a link or customer. */
interface Joined {
  values: readonly Value[];
  bytes: Buffer;
}

/** Most links or customers in the cache. */
const MOST_JOINED = 1000;

function* encodeAll<T>(rows: Iterable<T>, write: (writer: Writer, row: T) => void): Generator<Buffer> {
  const writer = new Writer();
  writer.raw(HEADER);
  for (const row of rows) {
    write(writer, row);
    if (writer.full.length > 0) yield* writer.full.splice(0);
  }
  writer.begin();
  writer.raw(TRAILER);
  yield* writer.full;
  yield writer.rest();
}

/** A class, because every cell of every row passes through it: fields cost a third less than closure variables. */
class Writer {
  /** Full chunks end with a complete row, so that a partly written row can be undone. */
  readonly full: Buffer[] = [];
  private chunk = Buffer.allocUnsafe(FIRST_CHUNK_BYTES);
  private used = 0;
  private rowStart = 0;
  /** By the index of the run's first column, then by id; undefined for an id that was seen once. */
  private readonly written: Array<Map<Value, Joined | undefined>> = [];

  rest(): Buffer {
    return this.chunk.subarray(0, this.used);
  }

  begin(): void {
    this.rowStart = this.used;
  }

  raw(bytes: Buffer): void {
    this.reserve(bytes.length);
    this.used += bytes.copy(this.chunk, this.used);
  }

  row(kinds: readonly Kind[], values: readonly Value[]): void {
    this.begin();
    this.int16(kinds.length);
    for (let i = 0; i < kinds.length; i++) this.value(kinds[i] as Kind, values[i] ?? null);
  }

  /** Returns false, and writes nothing, if the row has a text that cannot be stored as it is. */
  flatRow(
    kinds: readonly Kind[],
    joined: readonly number[],
    { values, extra }: Row,
    front: readonly string[],
  ): boolean {
    this.begin();
    this.int16(front.length + kinds.length + 1);
    let fits = true;
    for (let i = 0; i < front.length; i++) fits = this.value('text', front[i] as string) && fits;
    for (let i = 0; i < kinds.length && fits; ) {
      const end = joined[i] ?? 0;
      fits &&= end > i ? this.joined(kinds, values, i, end) : this.cell(kinds[i] as Kind, values[i] ?? null);
      i = Math.max(end, i + 1);
    }
    fits &&= this.cell('json', extra);
    if (!fits) this.used = this.rowStart;
    return fits;
  }

  /** Rows of a link usually have the same link columns: from the third row on, their bytes are copied. */
  private joined(kinds: readonly Kind[], values: readonly Value[], from: number, end: number): boolean {
    const id = values[from - 1] ?? null;
    const written = this.written[from] ?? new Map<Value, Joined | undefined>();
    this.written[from] = written;
    const before = written.get(id);
    if (before && isSame(before.values, values, from, end)) {
      this.raw(before.bytes);
      return true;
    }
    const start = this.used - this.rowStart;
    for (let i = from; i < end; i++) if (!this.cell(kinds[i] as Kind, values[i] ?? null)) return false;
    const isKnown = written.has(id);
    if (written.size > MOST_JOINED) written.clear();
    const bytes = isKnown ? Buffer.from(this.chunk.subarray(this.rowStart + start, this.used)) : undefined;
    written.set(id, bytes && { values, bytes });
    return true;
  }

  private cell(kind: Kind, value: Value): boolean {
    return this.value(kind, kind === 'json' && value !== null ? stringifyJson(value) : value);
  }

  /** Returns whether the value could be written as it is. */
  private value(kind: Kind, value: Value): boolean {
    if (value === null) this.nothing();
    else if (kind === 'text') return this.text(value as string);
    else if (kind === 'json') return this.json(value as string);
    else if (kind === 'integer') this.int64(value as number | bigint);
    else if (kind === 'timestamp') this.int64(micros(value as number));
    else if (kind === 'boolean') this.boolean(value === true);
    else this.bytes(encodeNumeric(value as number | bigint));
    return true;
  }

  private int16(value: number): void {
    this.reserve(2);
    this.used = this.chunk.writeInt16BE(value, this.used);
  }

  private nothing(): void {
    this.reserve(4);
    this.int32(-1);
  }

  private text(value: string): boolean {
    this.reserve(4 + value.length * MOST_BYTES);
    if (this.shortAscii(value)) return true;
    const bytes = this.chunk.write(value, this.used + 4, 'utf8');
    this.int32(bytes);
    this.used += bytes;
    return storableText(value) === value;
  }

  /** Most texts are short ASCII: copying them here costs less than calling the native writer. */
  private shortAscii(value: string): boolean {
    const { length } = value;
    if (length > SHORT) return false;
    const { chunk } = this;
    const start = this.used + 4;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f || unit === 0) return false;
      chunk[start + i] = unit;
    }
    this.int32(length);
    this.used += length;
    return true;
  }

  private json(value: string): boolean {
    this.reserve(5 + value.length * MOST_BYTES);
    this.chunk[this.used + 4] = JSONB_VERSION;
    const bytes = 1 + this.chunk.write(value, this.used + 5, 'utf8');
    this.int32(bytes);
    this.used += bytes;
    return storableJson(value) === value;
  }

  /** BigInt is slow: a number that a double holds exactly is split into two halves by arithmetic. */
  private int64(value: number | bigint): void {
    this.reserve(12);
    this.int32(8);
    if (typeof value === 'bigint') {
      this.used = this.chunk.writeBigInt64BE(value, this.used);
    } else {
      const high = Math.floor(value / 2 ** 32);
      this.int32(high);
      this.int32(value - high * 2 ** 32);
    }
  }

  private bytes(value: Buffer): void {
    this.reserve(4);
    this.int32(value.length);
    this.raw(value);
  }

  private boolean(value: boolean): void {
    this.reserve(5);
    this.int32(1);
    this.chunk[this.used++] = value ? 1 : 0;
  }

  private reserve(bytes: number): void {
    if (this.used + bytes <= this.chunk.length) return;
    const { chunk, rowStart, used } = this;
    if (rowStart > 0) this.full.push(chunk.subarray(0, rowStart));
    this.chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, 2 * (used - rowStart) + bytes));
    this.used = chunk.copy(this.chunk, 0, rowStart, used);
    this.rowStart = 0;
  }

  private int32(value: number): void {
    const { chunk, used } = this;
    chunk[used] = value >>> 24;
    chunk[used + 1] = value >>> 16;
    chunk[used + 2] = value >>> 8;
    chunk[used + 3] = value;
    this.used = used + 4;
  }
}

/** Objects are compared by identity, because nobody mutates the values of a row. */
function isSame(a: readonly Value[], b: readonly Value[], from: number, end: number): boolean {
  for (let i = from; i < end; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Microseconds since 2000, exact: the fraction of a millisecond is rounded on its own. */
function micros(instant: number): number | bigint {
  const whole = Math.floor(instant);
  const rest = Math.round((instant - whole) * 1000);
  const quick = (whole - EPOCH_2000_MS) * 1000 + rest;
  return Number.isSafeInteger(quick) ? quick : BigInt(whole - EPOCH_2000_MS) * 1000n + BigInt(rest);
}

/** A number in Postgres' binary `numeric`: groups of four decimal digits around the decimal point. */
function encodeNumeric(value: number | bigint): Buffer {
  const { isNegative, whole, fraction } = decimal(value);
  const wide = whole.padStart(Math.ceil(whole.length / 4) * 4, '0');
  const tail = fraction.padEnd(Math.ceil(fraction.length / 4) * 4, '0');
  const groups = [...`${wide}${tail}`.matchAll(/\d{4}/g)].map(([digits]) => Number(digits));
  let weight = wide.length / 4 - 1;
  while (groups[0] === 0) {
    groups.shift();
    weight--;
  }
  while (groups.at(-1) === 0) groups.pop();
  const buffer = Buffer.alloc(8 + groups.length * 2);
  // Unsigned, as the server reads it: 131,072 digits are 32,768 groups.
  buffer.writeUInt16BE(groups.length, 0);
  buffer.writeInt16BE(groups.length > 0 ? weight : 0, 2);
  buffer.writeUInt16BE(isNegative && groups.length > 0 ? 0x4000 : 0, 4);
  buffer.writeInt16BE(fraction.length, 6);
  groups.forEach((group, i) => {
    buffer.writeInt16BE(group, 8 + i * 2);
  });
  return buffer;
}

/** The digits before and after the point, without the exponent that JavaScript writes from 1e21 and below 1e-6. */
function decimal(value: number | bigint): { isNegative: boolean; whole: string; fraction: string } {
  const [mantissa = '', exponent = '0'] = String(value).replace(/^-/, '').split('e');
  const [before = '', after = ''] = mantissa.split('.');
  const shift = Number(exponent);
  const digits = shift >= 0 ? before + after.padEnd(shift, '0') : before.padStart(before.length - shift, '0') + after;
  const point = shift >= 0 ? before.length + shift : before.length;
  return { isNegative: value < 0, whole: digits.slice(0, point) || '0', fraction: digits.slice(point) };
}
