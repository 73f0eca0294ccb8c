import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Check, check, checkLeftovers, checkRows, complaintsOf, settle } from './checks.ts';
import { controlRoomOf, killLeft, type Member, startMember } from './processes.ts';
import { describeRun, judgeCourses } from './report.ts';
import { readDiary, type Sample, takeSample } from './samples.ts';
import { openScene, type Scene, type SceneOptions, TOKEN } from './scene.ts';
import { endWorkers, killServers, leaveNicely, letEventsArrive, pause, readHistoryAgain } from './unrest.ts';

/**
 * `npm run endure -- --minutes 30 [--seed N] [--queue redis|postgres] [--sources 50] [--servers]`: built workers at the full speed of the
 * sandbox, with arriving events and kills all the time. In the end every event is in both sinks once, and nothing has accumulated.
 */

const SAMPLE_MS = 5000;
/** Never killed, and serves the control room: its growth is a leak. */
const KEEPER = 'keeper';
const VICTIMS = ['worker-1', 'worker-2'];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    queue: { type: 'string', default: 'redis' },
    sources: { type: 'string', default: '1' },
    /** Kills Redis and Postgres, too. */
    servers: { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
const options = { seed: Number(values.seed), queue: values.queue, sources: Number(values.sources) } as SceneOptions;
if (
  !(minutes >= 1) ||
  !Number.isInteger(options.seed) ||
  !(options.sources >= 1) ||
  !['redis', 'postgres'].includes(options.queue)
) {
  throw new RangeError(
    'usage: npm run endure -- --minutes 30 [--seed 7] [--queue redis|postgres] [--sources 50] [--servers], from one minute on',
  );
}

const began = Date.now();
const say = (line: string): void =>
  void process.stdout.write(`${String(Math.round((Date.now() - began) / 1000)).padStart(5)} s  ${line}\n`);

const scene = await openScene(options);
say(`seed ${options.seed}, queue in ${options.queue}, ${minutes} minutes; what the workers say is in ${scene.dir}`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await killLeft();
    await scene.close({ keepFolders: true });
    process.exit(130);
  });
}
let isAllSo = false;
try {
  isAllSo = (await endure(scene)).every(({ isSo }) => isSo);
} finally {
  await killLeft();
  await scene.close({ keepFolders: !isAllSo });
}
process.exitCode = isAllSo ? 0 : 1;

async function endure(scene: Scene): Promise<Check[]> {
  const keeper = startMember(scene, KEEPER, ['start', '--json']);
  const workers = VICTIMS.map((name) => startMember(scene, name, ['worker', '--json']));
  await firstRun(scene, keeper);

  const from = Date.now();
  const over = new AbortController();
  const { signal } = over;
  const unrest = [
    letEventsArrive(scene, options.seed, signal),
    readHistoryAgain(scene, signal),
    endWorkers(scene, workers, { seed: options.seed, say, signal }),
    sampleUntil(scene, keeper, signal),
    values.servers ? killServers(scene, { seed: options.seed, say, signal }) : { redis: 0, postgres: 0 },
  ] as const;
  // Any of them ends early only by a fault, which stops the others.
  await Promise.race([sleep(minutes * 60_000), Promise.all(unrest)]).finally(() => over.abort());
  const [arrived, backfills, ends, samples, servers] = await Promise.all(unrest);
  say('no more events and no more kills');
  const diary = (await readDiary(scene, keeper.pid)).filter(({ at }) => at >= from);
  const atRest = await settle(scene);
  say(`${atRest.what}: ${atRest.found}`);
  const exits = await Promise.all([keeper, ...workers].map(leaveNicely));
  const badEnds = [...ends.badEnds, ...exits.filter((bad) => bad !== undefined)];
  const complaints = complaintsOf(scene, [KEEPER, ...VICTIMS]);
  const bugs = [...complaints.keys()].filter((message) => message.includes('bug'));

  const checks = [
    atRest,
    ...(await checkRows(scene)),
    ...(await checkLeftovers(scene)),
    check('workers exit with code 0 on SIGTERM', badEnds.length === 0, badEnds.join('; ') || 'all did'),
    check('no bug in any log', bugs.length === 0, bugs.join('; ') || 'none'),
    ...judgeCourses({ samples, diary }),
  ];
  const requests = scene.sandbox.service.stats().requests;
  process.stdout.write(
    describeRun({ ...options, minutes, arrived, backfills, ends, servers, requests, complaints, checks }),
  );
  return checks;
}

/** The first run has created tables and state. */
async function firstRun({ db }: Scene, { ended }: Member): Promise<void> {
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const runs = await db.query({ text: `select from tributary.runs where state = 'done'` }).catch(() => []); // Not there yet.
    if (runs.length > 0) return;
    await sleep(500);
  }
  throw new Error(`the worker ended before its first run did; see what it says in ${scene.dir}`);
}

/** Samples the metrics as often as Prometheus would. */
async function sampleUntil(scene: Scene, keeper: Member, signal: AbortSignal): Promise<Sample[]> {
  const samples: Sample[] = [];
  const room = controlRoomOf(keeper);
  while (await pause(SAMPLE_MS, signal)) {
    const answer = await fetch(`${room}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    await answer.text();
    if (answer.status < 500 && !answer.ok) throw new Error(`the control room answers ${answer.status}`);
    try {
      if (!answer.ok) throw new Error(`the control room answers ${answer.status}`);
      samples.push(await takeSample(scene, keeper.pid));
    } catch (error) {
      // Recovery: a server is down; the next sample succeeds.
      if (!values.servers) throw error;
    }
  }
  return samples;
}
