import type { Queryable } from '../../cursor/database/index.ts';
import { ENTITIES, STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import type { Maintained } from '../sink.ts';
import { lockTable } from './catalog.ts';
import { crowded, joinFiles, MOST_SMALL_FILES } from './compact.ts';
import { decodeManifestList } from './format/manifest-list.ts';
import { currentSnapshot, type Metadata, type Snapshot, withoutSnapshots } from './format/metadata.ts';
import { type Design, entityDesign, streamDesign } from './format/schema.ts';
import { provenSummary } from './proven.ts';
import { filesOf, loadTable, manifestFiles } from './table.ts';
import { inDraft, type Listed, pathOf, readBytes, tableFolder, type Warehouse } from './warehouse.ts';

const HOUR_MS = 3_600_000;

export interface Upkeep {
  /** How long readers can go back. */
  keepMs: number;
  /** Files that no snapshot names are left alone for so long: somebody may be about to commit them. */
  orphanMs: number;
  /** More small files than this of one day and source are joined. */
  mostSmall: number;
}

export const UPKEEP: Upkeep = { keepMs: 24 * HOUR_MS, orphanMs: 24 * HOUR_MS, mostSmall: MOST_SMALL_FILES };

/** Every table that Tributary writes, as far as it is there. */
export const designs = (): Design[] => [
  ...STREAM_NAMES.map((name) => streamDesign(STREAMS[name])),
  ...ENTITIES.map(entityDesign),
];

/** Everything that can be done: for the command. */
export async function maintain(warehouse: Warehouse, upkeep: Upkeep): Promise<Maintained> {
  const done: Maintained = {};
  for (const design of designs()) {
    if (!(await loadTable(warehouse.state, warehouse, design))) continue;
    const joined = await joinCrowded(warehouse, design, { ...upkeep, mostSmall: 1 });
    const expired = await expire(warehouse, design, upkeep.keepMs);
    const removed = await sweep(warehouse, design, upkeep.orphanMs);
    const table = await loadTable(warehouse.state, warehouse, design);
    const files = table ? (await filesOf(warehouse, table, {})).length : 0;
    done[`${warehouse.namespace}.${design.name}`] = { joined, expired, removed, files };
  }
  return done;
}

/** After a run: what has become due in the tables that it wrote to, and no more, since the next run waits. */
export async function tend(warehouse: Warehouse, stream: StreamName, upkeep: Upkeep): Promise<void> {
  for (const design of [streamDesign(STREAMS[stream]), ...ENTITIES.map(entityDesign)]) {
    const table = await loadTable(warehouse.state, warehouse, design);
    if (!table) continue;
    await joinCrowded(warehouse, design, upkeep);
    const oldest = Math.min(...expirable(table.metadata, upkeep.keepMs).map((snapshot) => snapshot['timestamp-ms']));
    // An hour's worth at a time: looking for files that nobody names any more means reading every manifest.
    if (oldest > Date.now() - upkeep.keepMs - HOUR_MS) continue;
    await expire(warehouse, design, upkeep.keepMs);
    await sweep(warehouse, design, upkeep.orphanMs);
  }
}

async function joinCrowded(warehouse: Warehouse, design: Design, { mostSmall }: Upkeep): Promise<number> {
  let joined = 0;
  for (;;) {
    const table = await loadTable(warehouse.state, warehouse, design);
    if (!table || crowded(await filesOf(warehouse, table, {}), mostSmall).length === 0) return joined;
    // One day at a time: a sync that wants to write waits for one, not for all.
    joined += await inDraft(warehouse, async (tx, draft) => {
      await lockTable(tx, warehouse, design.name);
      const now = await loadTable(tx, warehouse, design);
      const [group] = now ? crowded(await filesOf(warehouse, now, {}), mostSmall) : [];
      if (!now || !group) return 0;
      await joinFiles(tx, draft, now, group, await summaryOf(tx, warehouse, design));
      return group.length;
    });
  }
}

/** Links and customers are as last seen: nothing is proven of them. */
export const summaryOf = async (tx: Queryable, { name }: Warehouse, design: Design): Promise<Record<string, string>> =>
  design.isByDay ? provenSummary(tx, { sink: name, stream: design.name as StreamName }) : {};

function expirable(metadata: Metadata, keepMs: number): Snapshot[] {
  const current = currentSnapshot(metadata);
  const isOld = (snapshot: Snapshot): boolean => snapshot['timestamp-ms'] < Date.now() - keepMs;
  const left = new Set(withoutSnapshots(metadata, isOld).snapshots);
  return metadata.snapshots.filter((snapshot) => snapshot !== current && !left.has(snapshot));
}

async function expire(warehouse: Warehouse, design: Design, keepMs: number): Promise<number> {
  return inDraft(warehouse, async (tx, draft) => {
    await lockTable(tx, warehouse, design.name);
    const table = await loadTable(tx, warehouse, design);
    const gone = table ? expirable(table.metadata, keepMs) : [];
    if (!table || gone.length === 0) return 0;
    const next = withoutSnapshots(table.metadata, (snapshot) => gone.includes(snapshot));
    await warehouse.catalog.replace(tx, draft, design.name, table, next);
    return gone.length;
  });
}

/** Removes files of a table that neither a snapshot nor the catalog leads to, once they are old enough. */
async function sweep(warehouse: Warehouse, design: Design, orphanMs: number): Promise<number> {
  const { store } = warehouse;
  const folder = tableFolder(warehouse, design.name);
  await store.sweep(folder);
  const old: string[] = [];
  for await (const { path, modifiedAt } of store.list(folder)) if (modifiedAt < Date.now() - orphanMs) old.push(path);
  // Looked up behind the list: whatever was named meanwhile is not taken for an orphan.
  const table = await loadTable(warehouse.state, warehouse, design);
  if (!table) return 0;
  const named = await namedFiles(warehouse, table);
  const orphans = old.filter((path) => !named.has(path));
  for (const path of orphans) await store.delete(path);
  return orphans.length;
}

/** Every file that the metadata leads to. */
export async function namedFiles(warehouse: Warehouse, { location, metadata }: Listed): Promise<Set<string>> {
  const named = new Set([location, ...metadata['metadata-log'].map((entry) => entry['metadata-file'])]);
  for (const snapshot of metadata.snapshots) {
    const list = snapshot['manifest-list'];
    named.add(list);
    for (const manifest of decodeManifestList(await readBytes(warehouse, list))) {
      if (named.has(manifest.path)) continue;
      named.add(manifest.path);
      for (const { file } of await manifestFiles(warehouse, metadata, manifest)) named.add(file.path);
    }
  }
  return new Set([...named].map((one) => pathOf(warehouse, one)));
}
