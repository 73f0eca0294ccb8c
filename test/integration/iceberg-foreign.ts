import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Database } from '../../src/cursor/database/index.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { decodeManifest, type Entry, encodeManifest } from '../../src/sinks/iceberg/format/manifest.ts';
import { decodeManifestList, encodeManifestList, type Manifest } from '../../src/sinks/iceberg/format/manifest-list.ts';
import {
  currentSnapshot,
  type Metadata,
  metadataText,
  parseMetadata,
  presentColumns,
  withSnapshot,
} from '../../src/sinks/iceberg/format/metadata.ts';
import { specOf } from '../../src/sinks/iceberg/warehouse.ts';
import { lookAtTable, pathOf } from '../support/iceberg-place.ts';
import { queryDuckdb } from '../support/lake-readers.ts';

/**
 * Another program that writes to a table through its catalog, as pyiceberg and Spark do: data files by DuckDB; names, snapshots and commits
 * like theirs. `npm run interop` tests the real ones.
 */
interface WriterOptions {
  state: Database;
  namespace: string;
  table: string;
}

export function createForeignWriter({ state, namespace, table }: WriterOptions) {
  const seen = () => lookAtTable(state, namespace, table);
  const load = async (): Promise<{ location: string; metadata: Metadata; root: string }> => {
    const { location } = await seen();
    const metadata = parseMetadata(await readFile(pathOf(location), 'utf8'));
    return { location, metadata, root: dirname(dirname(pathOf(location))) };
  };
  const swap = async (location: string, root: string, metadata: Metadata): Promise<void> => {
    const path = join(root, 'metadata', `00999-${randomUUID()}.metadata.json`);
    await writeFile(path, metadataText({ ...metadata, 'last-updated-ms': metadata['last-updated-ms'] + 1 }));
    await state.query({
      text: `update public.iceberg_tables set metadata_location = $1, previous_metadata_location = $2 where metadata_location = $2`,
      values: [`file://${path}`, location],
    });
  };
  const entriesOf = async (metadata: Metadata): Promise<{ entries: Entry[]; deletes: Manifest[] }> => {
    const snapshot = currentSnapshot(metadata);
    const manifests = snapshot ? decodeManifestList(await readFile(pathOf(snapshot['manifest-list']))) : [];
    const data = manifests.filter(({ content }) => content === 'data');
    const all = await Promise.all(
      data.map(async (one) => decodeManifest(await readFile(pathOf(one.path)), specOf(metadata), one)),
    );
    return {
      entries: all.flat().filter(({ status }) => status !== 'deleted'),
      deletes: manifests.filter(({ content }) => content === 'deletes'),
    };
  };

  const write = async (root: string, select: string): Promise<Entry['file'][]> => {
    const days = await queryDuckdb(`select distinct (epoch_ms(timestamp) // ${DAY_MS})::int as day from (${select})`);
    const files: Entry['file'][] = [];
    for (const day of days.map((row) => Number(row.day))) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
      const path = join(root, `data/timestamp_day=${date}/00000-0-${randomUUID()}.parquet`);
      await mkdir(dirname(path), { recursive: true });
      const rows = `select * from (${select}) where epoch_ms(timestamp) // ${DAY_MS} = ${day}`;
      await queryDuckdb(`copy (${rows}) to '${path}' (format parquet, compression zstd)`);
      const [found] = await queryDuckdb(`select count(*) as n from read_parquet('${path}')`);
      files.push({
        ...{ path: `file://${path}`, day, rows: Number(found?.n), bytes: (await stat(path)).size },
        ...{ columns: new Map(), splitOffsets: [], sortOrderId: undefined },
      });
    }
    return files;
  };

  return {
    metadata: async () => (await load()).metadata,
    /** Files of the table in the current snapshot. */
    async files() {
      const { metadata } = await load();
      return (await entriesOf(metadata)).entries.map(({ file }) => ({ ...file, path: pathOf(file.path) }));
    },
    /** Replaces the metadata with an edited version. */
    async edit(change: (metadata: Metadata) => Metadata) {
      const { location, metadata, root } = await load();
      await swap(location, root, change(metadata));
    },
    /** Adds a file for each day of what DuckDB selects, and removes or renames others. */
    async commit({
      operation,
      select,
      removed = [],
      deleteFiles = false,
      renamed = (path) => path,
    }: {
      operation: string;
      select?: string;
      removed?: readonly string[];
      deleteFiles?: boolean;
      renamed?: (path: string) => string;
    }) {
      const { location, metadata, root } = await load();
      const { entries, deletes } = await entriesOf(metadata);
      const id = Date.now() * 1000 + Math.floor(Math.random() * 1000);
      const sequence = metadata['last-sequence-number'] + 1;
      const added = select === undefined ? [] : await write(root, select);
      const kept = entries
        .filter(({ file }) => !removed.includes(pathOf(file.path)))
        .map(
          (entry): Entry => ({ ...entry, status: 'existing', file: { ...entry.file, path: renamed(entry.file.path) } }),
        );
      for (const { file } of entries) await rename(pathOf(file.path), pathOf(renamed(file.path)));
      const newEntries = added.map(
        (file): Entry => ({ status: 'added', snapshotId: id, sequence: undefined, fileSequence: undefined, file }),
      );
      const put = async (all: readonly Entry[], content: Manifest['content']): Promise<Manifest> => {
        const bytes = encodeManifest(presentColumns(metadata).schema, specOf(metadata), all);
        const path = join(root, 'metadata', `${randomUUID()}-m0.avro`);
        await writeFile(path, bytes);
        const count = (status: string) => {
          const files = all.filter((entry) => entry.status === status);
          return { files: files.length, rows: files.reduce((sum, { file }) => sum + file.rows, 0) };
        };
        const days = all.flatMap(({ file }) => file.day ?? []);
        return {
          ...{
            path: `file://${path}`,
            bytes: bytes.length,
            content,
            specId: 0,
            sequence,
            minSequence: 1,
            snapshotId: id,
          },
          ...{ added: count('added'), existing: count('existing'), deleted: { files: 0, rows: 0 } },
          days: { first: Math.min(...days), last: Math.max(...days) },
        };
      };
      const [one] = entries;
      const list = join(root, 'metadata', `snap-${id}-0-${randomUUID()}.avro`);
      const parentId = metadata['current-snapshot-id'];
      const all = [
        ...(kept.length + newEntries.length > 0 ? [await put([...kept, ...newEntries], 'data')] : []),
        ...deletes,
        ...(deleteFiles && one ? [await put([{ ...one, status: 'added' }], 'deletes')] : []),
      ];
      await writeFile(list, encodeManifestList({ snapshotId: id, parentId, sequence }, all));
      const snapshot = {
        ...{ 'snapshot-id': id, ...(parentId !== undefined && { 'parent-snapshot-id': parentId }) },
        ...{ 'sequence-number': sequence, 'timestamp-ms': Date.now(), 'manifest-list': `file://${list}` },
        ...{ summary: { operation, 'spark.app.id': 'local-1' }, 'schema-id': metadata['current-schema-id'] },
      };
      await swap(location, root, withSnapshot(metadata, snapshot));
    },
  };
}
