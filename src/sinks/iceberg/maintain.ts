import type { Instant } from '../../model/instant.ts';
import { ENTITIES, STREAM_NAMES, STREAMS } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import { dropFile, findFeed } from '../files/event-index.ts';
import type { ListedFile } from '../files/store/store.ts';
import type { Maintained, MaintainOptions } from '../sink.ts';
import { type Design, entityDesign, streamDesign } from '../table-columns.ts';
import { decodeManifestList } from './format/manifest-list.ts';
import { withoutSnapshots } from './format/metadata.ts';
import { changeIfThere } from './table-writer.ts';
import { joinGroups } from './upkeep/join-files.ts';
import { expirable, KEEP_SNAPSHOTS, type KeepSnapshots, withPatience } from './upkeep/keep-snapshots.ts';
import {
  type EventsOf,
  filesOf,
  isBelow,
  loadTable,
  manifestFiles,
  pathOf,
  readBytes,
  tableFolder,
  type Version,
  type Warehouse,
} from './warehouse.ts';

export interface Maintenance {
  keep: KeepSnapshots;
  /** Unreferenced files are kept this long, because a writer may be about to commit them. */
  orphanMs: number;
  /** Earlier versions of the metadata are kept this long, because a nightly backup of the catalog names one of them. */
  versionsMs: number;
  /** On the current day, a source may have this many small files before they are joined. */
  mostSmall: number;
}

export const MAINTENANCE: Maintenance = {
  keep: KEEP_SNAPSHOTS,
  orphanMs: DAY_MS,
  versionsMs: 2 * DAY_MS,
  mostSmall: 8,
};

export const designs = (): Design[] => [
  ...STREAM_NAMES.map((name) => streamDesign(STREAMS[name])),
  ...ENTITIES.map(entityDesign),
];

/** Maintains one table after the other. Each step is complete in itself, so that a signal can end it between two. */
export async function maintain(
  warehouse: Warehouse,
  maintenance: Maintenance,
  { isDueOnly = false, signal }: MaintainOptions,
): Promise<Maintained> {
  const { keep, mostSmall } = maintenance;
  const done: Maintained = {};
  for (const design of designs()) {
    const listed = await warehouse.catalog.load(warehouse, design.name);
    if (!listed) continue;
    // At most once an hour: finding unreferenced files means reading every manifest.
    const isExpiryDue = !isDueOnly || expirable(listed.metadata, withPatience(keep)).length > 0;
    // Before joining, so that files that cannot be joined do not let the metadata grow.
    const expired = isExpiryDue ? await expire(warehouse, design, keep) : 0;
    const { joined, files } = await joinGroups(warehouse, design, isDueOnly ? mostSmall : undefined, signal);
    if (signal?.aborted) break;
    const removed = isExpiryDue ? await removeOrphans(warehouse, design, maintenance) : 0;
    done[`${warehouse.namespace}.${design.name}`] = { joined, expired, removed, files };
  }
  return done;
}

async function expire(warehouse: Warehouse, design: Design, keep: KeepSnapshots): Promise<number> {
  const expired = await changeIfThere(warehouse, design, async ({ draft, table }) => {
    const gone = expirable(table.metadata, keep);
    const next = withoutSnapshots(table.metadata, (snapshot) => gone.includes(snapshot));
    if (gone.length > 0) await warehouse.catalog.replace(draft, design.name, table, next);
    return gone.length;
  });
  return expired ?? 0;
}

const PRUNED_AT_ONCE = 500;

/** Removes the files of days before an instant from the table. Their bytes are deleted when the snapshots that list them expire. */
export async function pruneTable(warehouse: Warehouse, of: EventsOf, before: Instant): Promise<boolean> {
  const { stream, source } = of;
  const isMore = await changeIfThere(warehouse, streamDesign(stream), async ({ draft, table, removed }) => {
    const days = [{ first: Number.MIN_SAFE_INTEGER, last: before / DAY_MS - 1 }];
    const old = (await filesOf(table, { source, days })).filter((file) => file.source === source);
    removed.push(...old.slice(0, PRUNED_AT_ONCE));
    const feed = await findFeed(warehouse.state, { sink: warehouse.name, stream: stream.name, source });
    const partitions = new Set(removed.map(({ file }) => (file.day ?? 0) * 24));
    if (feed !== undefined) for (const partition of partitions) draft.later(dropFile(feed, partition));
    return old.length > removed.length;
  });
  return isMore ?? false;
}

async function removeOrphans(warehouse: Warehouse, design: Design, { orphanMs, versionsMs }: Maintenance) {
  const isOld = ({ path, modifiedAt }: ListedFile): boolean =>
    modifiedAt < Date.now() - (path.endsWith('.metadata.json') ? versionsMs : orphanMs);
  const old = await storedFiles(warehouse, design, isOld);
  // References are read after the listing, so that a file committed in between does not count as an orphan.
  const table = await loadTable(warehouse, design);
  return table ? removeUnnamed(warehouse, table, old) : 0;
}

/** Lists the files in a table's folder, referenced or not, after removing leftovers of killed writers. */
export async function storedFiles(
  warehouse: Warehouse,
  { name }: Design,
  isWanted: (file: ListedFile) => boolean = () => true,
): Promise<string[]> {
  const folder = tableFolder(warehouse, name);
  await warehouse.store.removeLeftovers(folder);
  const paths: string[] = [];
  for await (const file of warehouse.store.list(folder)) if (isWanted(file)) paths.push(file.path);
  return paths;
}

export async function removeUnnamed(warehouse: Warehouse, listed: Version, paths: readonly string[]): Promise<number> {
  const named = await referencedFiles(warehouse, listed);
  const orphans = paths.filter((path) => !named.has(path));
  for (const path of orphans) await warehouse.store.remove(path);
  return orphans.length;
}

async function referencedFiles(warehouse: Warehouse, { location, metadata }: Version): Promise<Set<string>> {
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
  return new Set([...named].filter((one) => isBelow(warehouse, one)).map((one) => pathOf(warehouse, one)));
}
