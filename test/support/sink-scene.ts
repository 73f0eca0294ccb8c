import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { type Finished, freshPlace } from './cli.ts';
import { queryDuckdb } from './lake-readers.ts';
import type { Sandbox } from './odd-service/service.ts';
import { freshDatabase, type TestDatabase } from './postgres.ts';
import { smallSandbox } from './sandbox.ts';

/** A service, a state, and another database, for tests that change the contents of a sink. */
export interface SinkScenes {
  sandbox: Sandbox;
  databases: readonly TestDatabase[];
  state: Database;
  other: Database;
}

export const ROWS = 3000;

export function sinkScenes(): SinkScenes {
  const scenes = {} as { -readonly [key in keyof SinkScenes]: SinkScenes[key] };
  beforeAll(async () => {
    scenes.sandbox = await smallSandbox({ rows: { clicks: ROWS, leads: 60, sales: 30 }, days: 30 });
    scenes.databases = await Promise.all([freshDatabase(), freshDatabase()]);
    [scenes.state, scenes.other] = scenes.databases.map(({ url }) => connect({ url, max: 3 })) as [Database, Database];
  });
  afterAll(async () => {
    await Promise.all([scenes.state?.close(), scenes.other?.close()]);
    await Promise.all(scenes.databases.map((database) => database.drop()));
  });
  return scenes;
}

let places = 0;

export type Scene = Awaited<ReturnType<typeof synced>>;

export interface SceneOptions {
  syncs?: number;
  since?: string;
  /** Runs the built program in a separate process. */
  isBuilt?: boolean;
  env?: Record<string, string>;
}

/** A unique source, synced into its own sinks; `SOURCE` in their config stands for its name. */
export async function synced(
  { sandbox, databases, state }: SinkScenes,
  sinks: string,
  { syncs = 2, since = '40d', isBuilt = false, env = {} }: SceneOptions = {},
) {
  const source = `scene_${process.pid}_${++places}`;
  const place = await freshPlace();
  const configure = (url: string): Promise<string> =>
    place.config(
      `sources: { ${source}: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 200, since: ${since},
  streams: { clicks: { every: 1h } } } }
sinks: { ${sinks.replaceAll('SOURCE', source)} }
state: { url: "${url}" }\n`,
    );
  await configure(databases[0]?.url ?? '');
  const tributary = async (...args: string[]): Promise<Finished> => {
    const done = await (isBuilt ? place.run : place.call)([...args, '--config', 't.yaml'], env);
    return { ...done, text: done.text.replace(/\s+/g, ' ') };
  };
  // The second sync finds a known sink.
  for (let i = 0; i < syncs; i++) {
    const { code, text } = await tributary('sync');
    expect([code, text]).toEqual([0, expect.anything()]);
  }
  const read = async (text: string): Promise<number> =>
    Number((await state.query<{ n: number | null }>({ text, values: [source] }))[0]?.n ?? 0);
  return {
    place,
    source,
    tributary,
    /** Switches to another state. */
    useState: async (url: string): Promise<void> => void (await configure(url)),
    /** The watermark, in seconds. */
    through: () =>
      read('select extract(epoch from min(complete_through)) as n from tributary.cursors where source = $1'),
    /** Requests of the last run. */
    requests: () => read('select requests as n from tributary.runs where source = $1 order by started_at desc limit 1'),
  };
}

interface TableOptions extends SceneOptions {
  isElsewhere?: boolean;
  more?: string;
}

/** In tables of a unique schema. */
export async function inTables(scenes: SinkScenes, { isElsewhere = false, more = '', ...options }: TableOptions = {}) {
  const url = isElsewhere ? `, url: "${scenes.databases[1]?.url}"` : '';
  const scene = await synced(scenes, `sink: { type: postgres, schema: SOURCE${url}${more} }`, options);
  return { ...scene, ...tablesOf(isElsewhere ? scenes.other : scenes.state, scene.source) };
}

export function tablesOf(db: Database, schema: string) {
  const query = async <T extends Record<string, unknown>>(text: string): Promise<T[]> =>
    db.query<T>({ text: text.replaceAll('@', schema) });
  return { query, rows: async () => Number((await query('select count(*) as n from @.clicks'))[0]?.n) };
}

export type LakeScene = Awaited<ReturnType<typeof inLake>>;

/** In Parquet files of a unique folder. */
export async function inLake(scenes: SinkScenes, isBuilt = false) {
  const scene = await synced(scenes, 'sink: { type: parquet, path: ./lake }', { isBuilt });
  const clicks = join(scene.place.dir, 'lake/clicks');
  /** The folders of the days, in order. */
  const days = async (): Promise<string[]> => (await readdir(clicks)).sort().map((day) => join(clicks, day));
  return { ...scene, clicks, days, file: `${scene.source}.parquet`, rows: () => rowsIn(clicks) };
}

/** Rows in the folder; fails on duplicates. */
export async function rowsIn(folder: string): Promise<number> {
  const [found] = await queryDuckdb(
    `select count(*) as n, count(distinct event_id) as ids from '${folder}/**/*.parquet'`,
  );
  expect(found?.n).toEqual(found?.ids);
  return Number(found?.n);
}
