import type { Instant } from '../../model/instant.ts';
import {
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  fitsSchema,
  MAGIC,
  type PlacedGroup,
  readFooter,
} from './format/index.ts';
import { META, type PartitionFile, timesOf } from './partition-file.ts';
import { evenParts, planSegments } from './plan.ts';
import { createReshape, jsonAsText, type LakeRow, schemaVersion } from './shape.ts';
import type { Staged, Store } from './store/store.ts';

/** What becomes of the rows of one group, in the new columns. What it leaves out is gone. */
export type Edit = (rows: readonly LakeRow[]) => LakeRow[];

export interface Rewrite {
  store: Store;
  path: string;
  present: PartitionFile | undefined;
  columns: readonly FileColumn[];
  /** By the number of the group. */
  edits: ReadonlyMap<number, Edit>;
  added: readonly LakeRow[];
  compression: Compression;
  metadata: Readonly<Record<string, string>>;
  /** Called between groups: this may take longer than a lease lasts. */
  beat(): Promise<void>;
}

/** A partition's next file: written, on disk, read back, and not seen by anybody yet. */
export interface Rewritten {
  staged: Staged;
  rows: number;
  oldest: Instant | undefined;
  newest: Instant | undefined;
  /** What it took, for the bench. */
  encodedRows: number;
  copiedRows: number;
}

/** In bounded memory: whatever the size of the file, no more than a group and the rows on their way into it are held at once. */
export async function rewrite(options: Rewrite): Promise<Rewritten> {
  const { store, path, present, columns, edits, compression, beat } = options;
  const groups = present?.file.groups ?? [];
  const isSameShape = present !== undefined && fitsSchema(present.file, columns);
  const reshape = createReshape(present?.file.columns ?? columns, columns);
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const order = inOrder(place('timestamp'), place('event_id'));
  const timeOf = (row: LakeRow): Instant => Number(row[place('timestamp')]);
  const segments = planSegments(
    groups.map((group, i) => ({
      rows: group.rows,
      ...timesOf(group),
      isTouched: edits.has(i) || !isSameShape,
    })),
    [...options.added].sort(order).map((row) => ({ at: timeOf(row), row })),
  );

  const written: PlacedGroup[] = [];
  const made = { rows: 0, oldest: undefined as Instant | undefined, newest: undefined as Instant | undefined };
  const work = { encodedRows: 0, copiedRows: 0 };
  const count = (rows: number, oldest: Instant, newest: Instant): void => {
    made.rows += rows;
    made.oldest = Math.min(made.oldest ?? oldest, oldest);
    made.newest = Math.max(made.newest ?? newest, newest);
  };
  const staged = await store.stage(path);
  try {
    await staged.write(MAGIC);
    for (const segment of segments) {
      await beat();
      if ('copy' in segment) {
        const group = groups[segment.copy];
        if (!group || !present) continue;
        for await (const bytes of present.bytes(group)) await staged.write(bytes);
        written.push({ rows: group.rows, length: group.length, chunks: group.chunks });
        const { oldest, newest } = timesOf(group);
        count(group.rows, oldest, newest);
        work.copiedRows += group.rows;
        continue;
      }
      const rows: LakeRow[] = [];
      for (const i of segment.groups) {
        const group = groups[i];
        const stored = group && present ? (await present.rows(group)).map(reshape) : [];
        rows.push(...(edits.get(i)?.(stored) ?? stored));
      }
      rows.push(...segment.added);
      rows.sort(order);
      for (const part of evenParts(rows)) {
        const { bytes, rows: n, length, chunks } = await encodeGroup(jsonAsText(columns), part, compression);
        await staged.write(bytes);
        written.push({ rows: n, length, chunks });
        count(n, timeOf(part[0] ?? []), timeOf(part.at(-1) ?? []));
        work.encodedRows += n;
      }
    }
    const metadata = { ...options.metadata, [META.schema]: schemaVersion(columns) };
    await staged.write(encodeFooter(columns, written, metadata));
    await checkReadable(staged, path, made.rows);
    return { staged, ...made, ...work };
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

/** Before anybody sees it: what is on disk is a file, and holds what was put in. */
async function checkReadable(staged: Staged, path: string, rows: number): Promise<void> {
  const open = await staged.finish();
  try {
    const found = (await readFooter(open)).rows;
    if (found !== rows) throw new Error(`${path} was written with ${rows} rows and reads back with ${found}`);
  } finally {
    await open.close();
  }
}

/** By time, then by id: the same rows make the same file. */
function inOrder(time: number, id: number): (a: LakeRow, b: LakeRow) => number {
  return (a, b) => Number(a[time]) - Number(b[time]) || (String(a[id]) < String(b[id]) ? -1 : 1);
}
