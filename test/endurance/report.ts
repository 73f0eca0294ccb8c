import { cpus, loadavg } from 'node:os';
import { type Check, check } from './checks.ts';
import { courseOf } from './figures.ts';
import type { DiaryEntry, Sample } from './samples.ts';
import type { SceneOptions } from './scene.ts';
import type { Ends } from './unrest.ts';

/** The most that the last third may exceed the first, by ratio and by amount: a running backfill, a starting process. Leaks exceed both. */
const MOST_GROWTH = 1.15;
const SLACK = { memory: 40, counts: 5, temporary: 10 };
const MB = 1_048_576;

/** No figure of the process that was never killed grows, and none of shared servers. */
export function judgeCourses({
  samples,
  diary,
}: {
  samples: readonly Sample[];
  diary: readonly DiaryEntry[];
}): Check[] {
  const held = ({ resources }: DiaryEntry): number => Object.values(resources).reduce((sum, count) => sum + count, 0);
  const courses: Array<[what: string, kind: keyof typeof SLACK, figures: number[]]> = [
    ['memory of the process (MB)', 'memory', diary.map(({ rss }) => rss / MB)],
    ['heap after a collection (MB)', 'memory', diary.map(({ heapUsed }) => heapUsed / MB)],
    ['memory outside of the heap (MB)', 'memory', diary.map(({ external }) => external / MB)],
    ['timers, sockets and other handles', 'counts', diary.map(held)],
    ['open files', 'counts', samples.map(({ files }) => files)],
    ['connections to Postgres, all processes', 'counts', samples.map(({ postgresConnections }) => postgresConnections)],
    ['clients of Redis, all processes', 'counts', samples.map(({ redisClients }) => redisClients)],
    ['entries of the queue', 'counts', samples.map(({ queueEntries }) => queueEntries)],
    ['temporary files in the lake', 'temporary', samples.map(({ lakeTemps }) => lakeTemps)],
    ['zombies', 'counts', samples.map((sample) => sample.zombies)],
    ['temporary files elsewhere', 'temporary', samples.map(({ otherTemps }) => otherTemps)],
  ];
  return courses.map(([what, kind, figures]) => {
    const { first, last, most, ratio } = courseOf(figures);
    const found = `× ${ratio.toFixed(2)} (${rounded(first)} → ${rounded(last)}, at most ${rounded(most)})`;
    return check(`flat: ${what}`, last <= Math.max(first * MOST_GROWTH, first + SLACK[kind]), found);
  });
}

const rounded = (figure: number): string => figure.toFixed(figure < 10 ? 1 : 0);

export interface EnduredRun extends SceneOptions {
  minutes: number;
  arrived: number;
  backfills: number;
  requests: number;
  ends: Ends;
  servers: { redis: number; postgres: number };
  complaints: ReadonlyMap<string, number>;
  checks: readonly Check[];
}

/** The section in results.md. */
export function describeRun(run: EnduredRun): string {
  const { seed, queue, sources, minutes, arrived, backfills, requests, ends, servers, complaints, checks } = run;
  const load = loadavg().map((figure) => figure.toFixed(1));
  const failed = checks.filter(({ isSo }) => !isSo).length;
  return `
${new Date().toISOString().slice(0, 10)}, ${minutes} minutes, seed ${seed}, queue in ${queue}, sources: ${sources}, Node ${process.versions.node}, ${cpus().length} cores, load ${load.join(' ')}

${ends.kills} times SIGKILL (${ends.killsAtWork} on a process that held a stream), ${ends.terms} times SIGTERM;
Redis was killed ${servers.redis} times and Postgres ${servers.postgres} times; ${arrived} events arrived, all of
history was read again ${backfills} times, in ${requests} requests.

| what must be so | found |
|---|---|
${checks.map(({ what, isSo, found }) => `| ${isSo ? '' : '**not so:** '}${what} | ${found} |`).join('\n')}

What the processes complained of: ${[...complaints].map(([message, count]) => `${count} × ${message}`).join('; ') || 'nothing'}.
${failed === 0 ? 'All of it is so.' : `${failed} of it is not so.`}
`;
}
