import { ConfigError } from '../../../model/errors.ts';
import type { Instant } from '../../../model/instant.ts';
import type { StreamName } from '../../../model/streams.ts';
import { type ParquetFile, readFooter, readGroup, type StoredGroup } from '../format/index.ts';
import type { OpenFile, Store } from '../store/store.ts';
import { jsonAsText, type LakeRow } from './columns.ts';

/** Metadata that every file of ours carries; whose it is decides whether we may touch it. */
export const META = {
  source: 'tributary.source',
  stream: 'tributary.stream',
  schema: 'tributary.schema',
  run: 'tributary.run',
  window: 'tributary.window',
  /** Whether the file still holds the version before: see `layout.ts`. */
  before: 'tributary.before',
} as const;

/** A partition's present file, open. */
export interface PartitionFile {
  readonly path: string;
  readonly identity: string;
  readonly file: ParquetFile;
  /** Rows of a group, or of some of its columns, in the order asked for. JSON comes as text. */
  rows(group: StoredGroup, names?: readonly string[]): Promise<LakeRow[]>;
  readonly size: number;
  /** A stretch of the file, a piece at a time. */
  bytes(stretch: { start: number; end: number }): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** More columns than this are read with their whole group. */
const MANY = 4;

const COPY_BYTES = 1024 * 1024;

export async function openPartition(
  store: Store,
  path: string,
  { source, stream }: { source: string; stream: StreamName },
): Promise<PartitionFile | undefined> {
  const open = await store.open(path);
  if (!open) return undefined;
  try {
    const file = await readFooter(open);
    const isOurs = file.metadata[META.source] === source && file.metadata[META.stream] === stream;
    if (!isOurs) throw notOurs(path, source);
    return partitionFile(path, open, file);
  } catch (error) {
    await open.close();
    throw error;
  }
}

export function partitionFile(path: string, open: OpenFile, file: ParquetFile): PartitionFile {
  const asText = { ...file, columns: jsonAsText(file.columns) };
  return {
    path,
    identity: open.identity,
    size: open.size,
    file,
    async rows(group, names) {
      if (!names || names.length < MANY) return readGroup(open, asText, group, names);
      // All of it at once: every column would be a request of its own, and in a bucket each takes its time.
      const bytes = await open.read(group.start, group.end);
      const held = {
        ...open,
        read: async (start: number, end: number) => bytes.subarray(start - group.start, end - group.start),
      };
      return readGroup(held, asText, group, names);
    },
    async *bytes({ start, end }) {
      for (let at = start; at < end; at += COPY_BYTES) yield await open.read(at, Math.min(end, at + COPY_BYTES));
    },
    close: () => open.close(),
  };
}

/** When the first and the last event of a group happened. */
export function timesOf(group: StoredGroup): { oldest: Instant; newest: Instant } {
  const range = group.ranges.get('timestamp');
  if (typeof range?.min !== 'number' || typeof range.max !== 'number') throw new Error('a group without times');
  return { oldest: range.min, newest: range.max };
}

const notOurs = (path: string, source: string): ConfigError =>
  new ConfigError(`${path} is in the lake and was not written by Tributary for source ${source}`, {
    where: { source },
    kept: 'the file as it is',
    next: 'move it out of the lake, or give the sink another path; then run again',
  });
