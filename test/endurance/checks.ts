import { setTimeout as sleep } from 'node:timers/promises';
import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import { globOf, queryDuckdb } from '../support/lake-readers.ts';
import { errorsOf, startMember } from './processes.ts';
import { lakeTemps, postgresConnections, redisClients, temps, zombies } from './samples.ts';
import { HISTORY_DAYS, type Scene, SINKS } from './scene.ts';
import { unfinishedBackfills } from './unrest.ts';

/** A requirement for the end of the run, and its result. */
export interface Check {
  what: string;
  isSo: boolean;
  found: string;
}

export const check = (what: string, isSo: boolean, found: unknown): Check => ({ what, isSo, found: String(found) });

const LONGEST_SETTLING_MS = 600_000;

/** Waits until every event is stored and proven and every backfill has ended. Returns the duration. */
export async function settle(scene: Scene): Promise<Check> {
  const began = Date.now();
  const seconds = (): number => Math.round((Date.now() - began) / 1000);
  for (;;) {
    const waitsFor = await unsettled(scene);
    if (waitsFor === undefined) return check('comes to rest', true, `after ${seconds()} s`);
    if (Date.now() - began > LONGEST_SETTLING_MS) {
      return check('comes to rest', false, `after ${seconds()} s still waiting for ${waitsFor}`);
    }
    await sleep(1000);
  }
}

async function unsettled(scene: Scene): Promise<string | undefined> {
  const { service } = scene.sandbox;
  if (service.stats().waiting > 0) return 'late events';
  if ((await unfinishedBackfills(scene)) > 0) return 'backfills';
  for (const stream of STREAM_NAMES) {
    const truth = truthOf(scene, stream).size;
    const there = (await tableIds(scene, stream)).length;
    if (there < truth) return `${truth - there} ${stream}`;
    for (const sink of Object.values(SINKS)) {
      if (!(await isProven(scene, stream, sink))) return `the watermark of ${stream} in ${sink}`;
    }
  }
  return undefined;
}

/** Whether all rows of the table are older than the watermark. */
async function isProven({ db, sources }: Scene, stream: StreamName, sink: string): Promise<boolean> {
  const proven = await db.query({
    text: `
      select from tributary.cursors
      where stream = $1 and sink = $2 and complete_through > (select max("timestamp") from attribution.${stream})`,
    values: [stream, sink],
  });
  return proven.length === sources.length;
}

/** Every source shows the same events. */
const truthOf = ({ sandbox, sources }: Scene, stream: StreamName): Set<string> =>
  new Set(sandbox.service.ids(stream).flatMap((id) => sources.map((source) => `${source}/${id}`)));

async function tableIds({ db }: Scene, stream: StreamName): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    text: `select _source || '/' || event_id as id from attribution.${stream}`,
  });
  return rows.map(({ id }) => id);
}

async function lakeIds({ lake }: Scene, stream: StreamName): Promise<string[]> {
  const rows = await queryDuckdb(`select _source || '/' || event_id as id from ${globOf(lake, stream)}`);
  return rows.map(({ id }) => String(id));
}

/** Both sinks hold every event of the service once, proven, and no others. */
export async function checkRows(scene: Scene): Promise<Check[]> {
  const checks: Check[] = [];
  for (const stream of STREAM_NAMES) {
    const truth = truthOf(scene, stream);
    const sinks = { warehouse: await tableIds(scene, stream), lake: await lakeIds(scene, stream) };
    for (const [sink, ids] of Object.entries(sinks)) {
      const there = new Set(ids);
      const lost = [...truth].filter((id) => !there.has(id)).length;
      const invented = [...there].filter((id) => !truth.has(id)).length;
      const doubled = ids.length - there.size;
      const isProvenThere = await isProven(scene, stream, sink);
      const found = `${truth.size} events: ${lost} lost, ${doubled} doubled, ${invented} invented, ${isProvenThere ? '' : 'not '}all proven`;
      checks.push(check(`${stream} in ${sink}`, lost + doubled + invented === 0 && isProvenThere, found));
    }
  }
  const { code } = await startMember(scene, 'verify', ['verify', '--from', `${HISTORY_DAYS + 1}d`, '--to', 'now'])
    .ended;
  checks.push(check('tributary verify: every value in both sinks is the service’s', code === 0, `exit code ${code}`));
  return checks;
}

/** After every process has exited. */
export async function checkLeftovers(scene: Scene): Promise<Check[]> {
  const { db } = scene;
  const none = async (what: string, found: Promise<readonly unknown[] | number>): Promise<Check> => {
    const left = await found;
    const count = typeof left === 'number' ? left : left.length;
    return check(`no ${what} left`, count === 0, count === 0 ? 'none' : JSON.stringify(left).slice(0, 300));
  };
  return Promise.all([
    none('connection to Postgres', postgresConnections(scene)),
    none('client of Redis', redisClients(scene)),
    none('temporary file in the lake', lakeTemps(scene)),
    none('temporary file elsewhere', temps(scene)),
    none('zombie', zombies()),
    none(
      'lease held',
      db.query({ text: 'select stream, holder from tributary.leases where expires_at > clock_timestamp()' }),
    ),
    none(
      'run that is called running',
      db.query({ text: `select id, kind from tributary.runs where state = 'running'` }),
    ),
    none('failed backfill', db.query({ text: `select id from tributary.backfills where state <> 'done'` })),
  ]);
}

/** Messages of logged errors, counted. */
export function complaintsOf(scene: Scene, names: readonly string[]): Map<string, number> {
  const complaints = new Map<string, number>();
  for (const line of names.flatMap((name) => errorsOf(scene, name).split('\n'))) {
    const message = /"msg":"([^"]+)"/.exec(line)?.[1];
    if (message !== undefined) complaints.set(message, (complaints.get(message) ?? 0) + 1);
  }
  return complaints;
}
