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
  type StoredGroup,
} from './format/index.ts';
import { createLayout, evenParts, freshLayout, planSegments, type Segment, type Stretch } from './layout.ts';
import {
  createReshape,
  jsonAsText,
  type LakeRow,
  META,
  type PartitionFile,
  schemaVersion,
  timesOf,
} from './partition-file.ts';
import type { Staged, Store } from './store/store.ts';

/** Maps the rows of one group to the new columns. Rows that it omits are deleted. */
export type Edit = (rows: readonly LakeRow[]) => LakeRow[];

interface Rewrite {
  store: Store;
  path: string;
  present: PartitionFile | undefined;
  columns: readonly FileColumn[];
  /** By the index of the group. */
  edits: ReadonlyMap<number, Edit>;
  added: readonly LakeRow[];
  /** Whether the new file must hold nothing of what was replaced. */
  isFresh?: boolean;
  compression: Compression;
  metadata: Readonly<Record<string, string>>;
  /** Called between groups: this may take longer than a lease lasts. */
  beat(): Promise<void>;
}

/** A partition's next file: written, synced, read back, and not published yet. */
export interface Rewritten {
  staged: Staged;
  rows: number;
  oldest: Instant | undefined;
  newest: Instant | undefined;
  /** It still holds the previous version. */
  holdsBefore: boolean;
}

/** In bounded memory: whatever the size of the file, only a group and its new rows are held at once. */
export async function rewrite(options: Rewrite): Promise<Rewritten> {
  const staged = await options.store.stage(options.path);
  try {
    const { groups, holdsBefore } = await writeGroups(options, staged);
    const rows = groups.reduce((sum, group) => sum + group.rows, 0);
    await checkReadable(staged, options.path, rows);
    return { staged, rows, holdsBefore, ...extentOf(groups) };
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

/** A group of the new file, with the times of its first and last event. */
interface Written extends PlacedGroup {
  start: number;
  oldest: Instant;
  newest: Instant;
}

async function writeGroups(options: Rewrite, staged: Staged): Promise<{ groups: Written[]; holdsBefore: boolean }> {
  const { present, columns, edits, compression, beat } = options;
  const groups = present?.file.groups ?? [];
  const segments = segmentsOf(options, groups);
  const copied = new Set(segments.flatMap((segment) => ('copy' in segment ? [segment.copy] : [])));
  const layout = present && !options.isFresh ? createLayout(present, (i) => copied.has(i)) : freshLayout();
  const isKept = layout.kept.length > 0;
  const reshape = createReshape(present?.file.columns ?? columns, columns);
  const order = inOrder(columns);
  const time = placeOf(columns, 'timestamp');
  const written: Written[] = [];

  const copy = async (stretch: Stretch, start: number): Promise<void> => {
    let at = start;
    for await (const bytes of present?.bytes(stretch) ?? []) {
      await staged.write(bytes, at);
      at += bytes.length;
    }
  };
  const encode = async (rows: readonly LakeRow[]): Promise<void> => {
    const { bytes, rows: n, length, chunks } = await encodeGroup(jsonAsText(columns), rows, compression);
    const start = layout.place(length);
    await staged.write(bytes, start);
    const [oldest, newest] = [Number(rows[0]?.[time]), Number(rows.at(-1)?.[time])];
    written.push({ rows: n, length, chunks, start, oldest, newest });
  };

  await staged.write(MAGIC, 0);
  for (const stretch of layout.kept) await copy(stretch, stretch.start);
  for (const segment of segments) {
    await beat();
    if ('copy' in segment) {
      const group = groups[segment.copy] as StoredGroup;
      const start = isKept ? group.start : layout.place(group.length);
      if (!isKept) await copy(group, start);
      written.push({ rows: group.rows, length: group.length, chunks: group.chunks, start, ...timesOf(group) });
      continue;
    }
    const rows = [...segment.added];
    for (const i of segment.groups) {
      const stored = (await present?.rows(groups[i] as StoredGroup))?.map(reshape) ?? [];
      rows.push(...(edits.get(i)?.(stored) ?? stored));
    }
    for (const part of evenParts(rows.sort(order))) await encode(part);
  }
  const metadata = { ...options.metadata, ...marksOf(columns, isKept) };
  const places = { starts: written.map(({ start }) => start), footerAt: layout.end() };
  await staged.write(encodeFooter(columns, written, metadata, places), places.footerAt);
  return { groups: written, holdsBefore: isKept };
}

function segmentsOf({ present, columns, edits, added }: Rewrite, groups: readonly StoredGroup[]): Segment<LakeRow>[] {
  const isSameShape = present !== undefined && fitsSchema(present.file, columns);
  const time = placeOf(columns, 'timestamp');
  return planSegments(
    groups.map((group, i) => ({ rows: group.rows, ...timesOf(group), isTouched: edits.has(i) || !isSameShape })),
    [...added].sort(inOrder(columns)).map((row) => ({ at: Number(row[time]), row })),
  );
}

/** Its schema; and whether it still holds the previous version, which may contain data to be erased. */
const marksOf = (columns: readonly FileColumn[], isKept: boolean): Record<string, string> => ({
  [META.schema]: schemaVersion(columns),
  [META.before]: isKept ? 'yes' : 'no',
});

function extentOf(groups: readonly Written[]): Pick<Rewritten, 'oldest' | 'newest'> {
  if (groups.length === 0) return { oldest: undefined, newest: undefined };
  return {
    oldest: Math.min(...groups.map(({ oldest }) => oldest)),
    newest: Math.max(...groups.map(({ newest }) => newest)),
  };
}

/** Before publishing: checks that the file on disk is valid and holds what was written. */
async function checkReadable(staged: Staged, path: string, rows: number): Promise<void> {
  const open = await staged.finish();
  try {
    const found = (await readFooter(open)).rows;
    if (found !== rows) throw new Error(`${path} was written with ${rows} rows and reads back with ${found}`);
  } finally {
    await open.close();
  }
}

const placeOf = (columns: readonly FileColumn[], wanted: string): number =>
  columns.findIndex(({ name }) => name === wanted);

/** By time, then by id: the same rows make the same file. */
function inOrder(columns: readonly FileColumn[]): (a: LakeRow, b: LakeRow) => number {
  const [time, id] = [placeOf(columns, 'timestamp'), placeOf(columns, 'event_id')];
  return (a, b) => Number(a[time]) - Number(b[time]) || (String(a[id]) < String(b[id]) ? -1 : 1);
}
