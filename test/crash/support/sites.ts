import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from '../../../src/cursor/database/index.ts';
import { instantOf } from '../../../src/cursor/database/sql.ts';
import { STREAM_NAMES, type StreamName } from '../../../src/model/streams.ts';
import { createFolderStore } from '../../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink } from '../../../src/sinks/iceberg/iceberg-sink.ts';
import { MAINTENANCE } from '../../../src/sinks/iceberg/maintain.ts';
import { type Engine, emptyEngine, openEngine } from '../../support/engine.ts';
import { ageTable, lookAtTable, namedBy, relationOf, type SeenTable } from '../../support/iceberg-place.ts';
import { download } from '../../support/lake-place.ts';
import { filesIn, globOf, queryDuckdb } from '../../support/lake-readers.ts';
import { startRedis } from '../../support/redis.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

/** An event as a reader of a sink finds it. */
export interface Found {
  id: string;
  at: number;
  /** The name of a lead or a sale. */
  name: string | null;
  customer: string | null;
}

/** Where the rows of one case go, and what a reader without knowledge of Tributary finds there. */
export interface Site {
  name: SiteName;
  /** As in the config. */
  settings: object;
  /** Refreshes the copy that is read, where there is one. */
  look?(): Promise<void>;
  events(stream: StreamName): Promise<Found[]>;
  /** The watermark shown beside the data; undefined if there is none. */
  shown(stream: StreamName): Promise<number | undefined>;
  /** The most by which that may trail the cursor; absent: not at all. */
  shownBehindMs?: number;
  /** Files that should not exist when no process runs. */
  leftovers(): Promise<string[]>;
  /** Deletes every row, as a user might. */
  empty?(): Promise<void>;
  /** Makes everything there so much older, where age matters. */
  age?(ms: number): Promise<void>;
  /** The sink's table of customers, if it has one. */
  customers?(): Promise<string[]>;
}

export type SiteName = 'here' | 'elsewhere' | 'further' | 'folder' | 's3' | 'tables';

/** Servers for one case at a time: a paused case keeps its locks, so concurrent cases must not share them. */
export interface Grounds {
  state: Engine;
  elsewhere: Engine;
  s3: S3Server;
  /** The URL of a Redis. */
  redis: string;
}

export async function openGrounds(count: number): Promise<{ grounds: Grounds[]; close(): Promise<void> }> {
  const [s3, redis] = await Promise.all([startS3(), startRedis()]);
  Object.assign(process.env, s3.environment);
  const grounds = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({
      state: await openEngine(),
      elsewhere: await emptyEngine(),
      s3,
      redis: `${redis.url}/${i}`,
    })),
  );
  return {
    grounds,
    async close() {
      for (const { state, elsewhere } of grounds) await Promise.all([state.close(), elsewhere.close()]);
      await s3.close();
    },
  };
}

export function siteOf(name: SiteName, { state, elsewhere, s3 }: Grounds, source: string, dir: string): Site {
  switch (name) {
    case 'folder':
      return folderSite(dir);
    case 's3':
      return bucketSite(s3, source, dir);
    case 'tables':
      return tablesSite(state.db, source, dir);
    case 'here':
      return warehouseSite(name, { db: state.db, source, schema: 'attribution' });
    case 'elsewhere':
      return warehouseSite(name, { ...elsewhere, source, schema: 'attribution' });
    case 'further':
      return warehouseSite(name, { ...elsewhere, source, schema: 'further' });
  }
}

const TABLES = ['clicks', 'leads', 'sales', 'links', 'customers'];

/** Iceberg tables in a folder, read by the metadata that the catalog names and a third-party Avro library. */
function tablesSite(state: Database, source: string, dir: string): Site {
  const path = join(dir, 'iceberg');
  const namespace = source.replaceAll('-', '_');
  const look = (table: string): Promise<SeenTable | undefined> =>
    lookAtTable(state, namespace, table).catch(() => undefined);
  const relation = async (table: string): Promise<string | undefined> => {
    const seen = await look(table);
    return seen && seen.files.length > 0 ? relationOf(seen) : undefined;
  };
  return {
    name: 'tables',
    settings: { type: 'iceberg', warehouse: path, namespace },
    async events(stream) {
      const files = await relation(stream);
      return files ? queryFiles(files, stream) : [];
    },
    shownBehindMs: 15 * 60_000,
    async shown(stream) {
      const properties = (await look(stream))?.metadata.properties as Record<string, string> | undefined;
      const through = properties?.[`tributary.complete-through.${source}`];
      return through === undefined ? undefined : Date.parse(through);
    },
    async age(ms) {
      for (const table of TABLES) {
        const seen = await look(table);
        if (seen) await ageTable(seen, ms);
      }
    },
    async customers() {
      const files = await relation('customers');
      const rows = files ? await queryDuckdb(`select customer_id as id from ${files}`) : [];
      return rows.map(({ id }) => String(id));
    },
    /** A kill leaves files that no snapshot names; this lets `maintain` remove them without waiting a day. */
    async leftovers() {
      if (!existsSync(path)) return [];
      const sink = createIcebergSink({
        ...{ name: 'tables', state, readAgainMs: () => 0, warehouse: path, namespace, store: createFolderStore(path) },
        maintenance: { ...MAINTENANCE, orphanMs: -60_000, versionsMs: -60_000 },
      });
      await sink.maintain();
      await sink.close();
      const named = new Set<string>();
      for (const table of TABLES) {
        const seen = await look(table);
        if (seen) for (const file of await namedBy(seen)) named.add(file);
      }
      return (await filesIn(path)).filter((file) => !named.has(join(path, file)));
    },
  };
}

/** The files of a lake: any other is a leftover. */
const BELONGS = /^(?:\w+\/date=[\d-]+\/source-\d+\.parquet|_catalog\.json|_coverage\.json|README\.md)$/;

/** A lake in a folder, read by a glob. */
function folderSite(dir: string): Site {
  const path = join(dir, 'lake');
  const empty = (): Promise<void> => rm(path, { recursive: true });
  return { name: 'folder', settings: { type: 'parquet', path }, empty, ...readersOf(path) };
}

/** A lake in a bucket, read from a copy. */
function bucketSite(server: S3Server, source: string, dir: string): Site {
  const prefix = `lakes/${source}`;
  const path = join(dir, 'copy');
  const { leftovers, ...readers } = readersOf(path);
  return {
    name: 's3',
    settings: { type: 'parquet', path: `s3://${server.bucket}/${prefix}` },
    ...readers,
    async look() {
      await rm(path, { recursive: true, force: true });
      await download(server, `${prefix}/`, path);
    },
    async leftovers() {
      const uploads = server.uploads().filter((key) => key.startsWith(`${prefix}/`));
      return [...(await leftovers()), ...uploads.map((key) => `an unfinished upload of ${key}`)];
    },
  };
}

function readersOf(path: string): Pick<Site, 'events' | 'shown' | 'leftovers'> {
  const files = async (): Promise<string[]> => (existsSync(path) ? filesIn(path) : []);
  return {
    async events(stream) {
      const isThere = (file: string): boolean => file.startsWith(`${stream}/`) && file.endsWith('.parquet');
      return (await files()).some(isThere) ? queryFiles(globOf(path, stream), stream) : [];
    },
    async shown(stream) {
      const text = await readFile(join(path, '_coverage.json'), 'utf8').catch(() => '[]');
      const rows = JSON.parse(text) as Array<{ stream: string; complete_through: string | null }>;
      const through = rows.find((row) => row.stream === stream)?.complete_through;
      return through ? Date.parse(through) : undefined;
    },
    leftovers: async () => (await files()).filter((file) => !BELONGS.test(file)),
  };
}

/** The columns of `Found`, with the time as the database formats it. */
function foundOf(stream: StreamName, time: string): string {
  const [name, customer] = stream === 'clicks' ? ['null', 'null'] : ['event_name', 'customer_id'];
  return `event_id as id, ${time} as at, ${name} as name, ${customer} as customer`;
}

async function queryFiles(relation: string, stream: StreamName): Promise<Found[]> {
  const rows = await queryDuckdb(`select ${foundOf(stream, 'epoch_ms("timestamp")')} from ${relation}`);
  return rows.map((row) => ({ ...row, at: Number(row.at) }) as Found);
}

interface Place {
  db: Database;
  /** If it is not the state's database. */
  url?: string;
  schema: string;
  source: string;
}

/** Tables of a Postgres, with the state in the same database or in another. */
function warehouseSite(name: SiteName, { db, url, schema, source }: Place): Site {
  /** A table that does not exist yet is empty. */
  const select = async <T extends object>(table: string, columns: string, where: string): Promise<T[]> => {
    const [found] = await db.query<{ there: string | null }>({
      text: 'select to_regclass($1)::text as there',
      values: [`${schema}.${table}`],
    });
    if (!found?.there) return [];
    return db.query<T>({ text: `select ${columns} from ${schema}.${table} where ${where}`, values: [source] });
  };
  return {
    name,
    settings: { type: 'postgres', schema, ...(url && { url }) },
    events: (stream) => select<Found>(stream, foundOf(stream, `${instantOf('"timestamp"')}`), '_source = $1'),
    async shown(stream) {
      const columns = `${instantOf('complete_through')} as at`;
      const [row] = await select<{ at: number | null }>('coverage', columns, `source = $1 and stream = '${stream}'`);
      return row?.at ?? undefined;
    },
    async leftovers() {
      const receipts = await select<{ stream: string }>('_receipts', 'stream', `source = $1 and advance <> '{}'`);
      return receipts.map(({ stream }) => `the receipt of ${stream}`);
    },
    async empty() {
      for (const stream of STREAM_NAMES)
        await db.query({ text: `delete from ${schema}.${stream} where _source = $1`, values: [source] });
    },
    async customers() {
      const rows = await select<{ id: string }>('customers', 'customer_id as id', '_source = $1');
      return rows.map(({ id }) => id);
    },
  };
}
