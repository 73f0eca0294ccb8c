import { setTimeout as sleep } from 'node:timers/promises';
import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import { createRandom } from '../../src/sandbox/data/random.ts';
import { type Member, startMember } from './processes.ts';
import { HISTORY_DAYS, type Scene } from './scene.ts';

/** Events until the signal: arrivals, backfills and kills of workers. */

/** Average events a second over all streams; sometimes many leads at one instant. */
const MOST_PER_SECOND = 20;
const TIES = 300;
const SHARES: Readonly<Record<StreamName, number>> = { clicks: 0.75, leads: 0.15, sales: 0.1 };

export async function letEventsArrive({ sandbox: { service }, sources }: Scene, seed: number, signal: AbortSignal) {
  const random = createRandom(seed + 1);
  let arrived = 0;
  while (await pause(1000, signal)) {
    const count = random.int(0, Math.ceil(MOST_PER_SECOND / sources.length));
    for (const stream of STREAM_NAMES) {
      arrived += service.arrive(stream, Math.round(count * SHARES[stream])).length;
    }
    if (random.chance(1 / 60)) arrived += service.arrive('leads', Math.ceil(TIES / sources.length)).length;
  }
  return arrived;
}

/** Runs backfills of the whole history one after another: otherwise workers would only wait for new events. */
export async function readHistoryAgain(scene: Scene, signal: AbortSignal): Promise<number> {
  const args = ['backfill', '--queue', '--force', '--from', `${HISTORY_DAYS}d`, '--to', '1h'];
  let backfills = 0;
  do {
    const { code } = await startMember(scene, 'backfill', args).ended;
    // A server is down.
    if (code === TRY_AGAIN && (await pause(2000, signal))) continue;
    if (code !== 0) throw new Error(`a backfill could not be given to the queue: exit code ${code}`);
    backfills += 1;
    while ((await unfinishedBackfills(scene)) > 0 && (await pause(2000, signal)));
  } while (!signal.aborted);
  return backfills;
}

const TRY_AGAIN = 4;

export async function unfinishedBackfills({ db }: Scene): Promise<number> {
  return (await db.query({ text: `select from tributary.backfills where state = 'queued'` })).length;
}

export interface Ends {
  kills: number;
  /** Kills of a process that held a stream. */
  killsAtWork: number;
  terms: number;
  /** Processes that ended without a signal, did not exit when asked to, or exited with a code other than 0. */
  badEnds: string[];
}

const TERM_SHARE = 0.15;
const LONGEST_LEAVE_MS = 30_000;

/** Ends one worker after another, mostly as a power cut would, and starts a replacement. */
export async function endWorkers(
  scene: Scene,
  workers: Member[],
  { seed, say, signal }: { seed: number; say(line: string): void; signal: AbortSignal },
): Promise<Ends> {
  const random = createRandom(seed);
  const ends: Ends = { kills: 0, killsAtWork: 0, terms: 0, badEnds: [] };
  while (await pause(random.int(2000, 14_000), signal)) {
    const index = random.int(0, workers.length - 1);
    const victim = workers[index];
    if (!victim) throw new RangeError('a list of no workers');
    const held = await streamsOf(scene, victim);
    if (victim.child.exitCode !== null) {
      if (!isTurnedAway(victim)) ends.badEnds.push(`${victim.name} (${victim.pid}) ended by itself`);
    } else if (random.chance(TERM_SHARE)) {
      ends.terms += 1;
      await untilAtWork(victim);
      const bad = await leaveNicely(victim);
      if (bad && !isTurnedAway(victim)) ends.badEnds.push(bad);
    } else {
      ends.kills += 1;
      if (held.length > 0) ends.killsAtWork += 1;
      victim.child.kill('SIGKILL');
      await victim.ended;
    }
    const { exitCode, signalCode } = victim.child;
    const end = signalCode ?? `exit code ${exitCode}`;
    say(`${victim.name} (${victim.pid}) ended: ${end}; it held ${held.join(', ') || 'nothing'}`);
    workers[index] = startMember(scene, victim.name, ['worker', '--json']);
  }
  return ends;
}

/** Kills Redis and Postgres in turn; each is restarted after a moment. Returns the number of kills. */
export async function killServers(
  { redis, killPostgres }: Scene,
  { seed, say, signal }: { seed: number; say(line: string): void; signal: AbortSignal },
): Promise<{ redis: number; postgres: number }> {
  const random = createRandom(seed + 2);
  const kills = { redis: 0, postgres: 0 };
  while (await pause(random.int(15_000, 45_000), signal)) {
    if (redis && kills.redis <= kills.postgres) {
      kills.redis += 1;
      await redis.stop();
      await sleep(random.int(100, 8000));
      await redis.start();
      say('Redis was killed, and is back without anything');
    } else {
      kills.postgres += 1;
      await killPostgres();
      say('Postgres was killed');
    }
  }
  return kills;
}

/** It was started while a server was down and exited with that error: a supervisor restarts it. */
const isTurnedAway = ({ child, said }: Member): boolean =>
  child.exitCode === TRY_AGAIN && !said().includes('working on');

/** On a busy machine, loading takes longer than an exit may take. */
async function untilAtWork({ child, said }: Member): Promise<void> {
  while (!said().includes('working on') && child.exitCode === null) await sleep(200);
}

/** Returns the fault of its exit, if any. */
export async function leaveNicely({ name, pid, child, ended }: Member): Promise<string | undefined> {
  child.kill('SIGTERM');
  const left = await Promise.race([ended, sleep(LONGEST_LEAVE_MS, undefined, { ref: false })]);
  if (left?.code === 0) return undefined;
  child.kill('SIGKILL');
  await ended;
  return `${name} (${pid}) was asked to leave: ${left ? `exit code ${left.code ?? left.signal}` : 'it stayed'}`;
}

async function streamsOf({ db }: Scene, { pid }: Member): Promise<string[]> {
  const held = await db.query<{ stream: string }>({
    text: `select stream from tributary.leases where expires_at > clock_timestamp() and holder like $1`,
    values: [`%process ${pid} on%`],
  });
  return held.map(({ stream }) => stream);
}

/** False if aborted by the signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => {}); // Aborted: the result shows it.
  return !signal.aborted;
}
