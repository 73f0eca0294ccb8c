import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { filesIn } from '../support/lake-readers.ts';
import type { Scene } from './scene.ts';

/** A sample of everything that could accumulate, from outside the processes. */
export interface Sample {
  at: number;
  /** Open files and sockets of the process that is never killed. */
  files: number;
  postgresConnections: number;
  redisClients: number;
  /** Keys in Redis, or rows in the tables of the queue. */
  queueEntries: number;
  lakeTemps: number;
  otherTemps: number;
  zombies: number;
}

export async function takeSample(scene: Scene, keeper: number): Promise<Sample> {
  return {
    at: Date.now(),
    files: (await readdir(`/proc/${keeper}/fd`)).length,
    postgresConnections: await postgresConnections(scene),
    redisClients: await redisClients(scene),
    queueEntries: await queueEntries(scene),
    lakeTemps: (await lakeTemps(scene)).length,
    otherTemps: (await temps(scene)).length,
    zombies: await zombies(),
  };
}

/** Connections of the workers. */
export async function postgresConnections({ db }: Scene): Promise<number> {
  const found = await db.query({
    text: `select from pg_stat_activity where datname = current_database() and application_name like 'tributary%'`,
  });
  return found.length;
}

/** Without this connection. */
export async function redisClients({ redis }: Scene): Promise<number> {
  const list = String((await redis?.command('CLIENT', 'LIST')) ?? '');
  return list.split('\n').filter((line) => line.includes('id=')).length - (redis ? 1 : 0);
}

/** Without the queue's own event log, which both backends limit to ten thousand. */
async function queueEntries({ db, redis }: Scene): Promise<number> {
  if (redis) return Number(await redis.command('DBSIZE'));
  const [row] = await db.query<{ n: number }>({
    text: `
      select coalesce(sum((xpath('/row/n/text()', query_to_xml(
        format('select count(*) as n from %I.%I', schemaname, tablename), false, true, '')))[1]::text::int), 0)::int as n
      from pg_tables where schemaname = 'tributary_queue' and tablename <> 'event'`,
  });
  return row?.n ?? 0;
}

/** Files that are neither Parquet nor the lake's metadata. */
export async function lakeTemps({ lake }: Scene): Promise<string[]> {
  const files = await filesIn(lake).catch((error: NodeJS.ErrnoException) => {
    // Recovery: nothing was written yet, or a folder was removed during the walk; the next sample succeeds.
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return files.filter((file) => !/\.parquet$|^_(?:catalog|coverage)\.json$|^README\.md$/.test(file));
}

export const temps = ({ tmp }: Scene): Promise<string[]> => readdir(tmp);

/** Ended children and grandchildren that were not reaped. */
export async function zombies(): Promise<number> {
  const states = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(join('/proc', pid, 'stat'), 'utf8').catch(() => '')), // It has ended.
  );
  const processes = states.map((stat) => {
    const [, pid, state, parent] = /^(\d+) \(.*\) (\S) (\d+)/s.exec(stat) ?? [];
    return { pid: Number(pid), state, parent: Number(parent) };
  });
  const family = new Set([process.pid]);
  for (let before = 0; before < family.size; ) {
    before = family.size;
    for (const { pid, parent } of processes) if (family.has(parent)) family.add(pid);
  }
  return processes.filter(({ pid, state }) => state === 'Z' && family.has(pid)).length;
}

/** A process's record of itself. */
export interface DiaryEntry {
  at: number;
  rss: number;
  heapUsed: number;
  external: number;
  resources: Record<string, number>;
}

export async function readDiary({ diary }: Scene, pid: number): Promise<DiaryEntry[]> {
  const text = await readFile(join(diary, `${pid}.ndjson`), 'utf8');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as DiaryEntry);
}
