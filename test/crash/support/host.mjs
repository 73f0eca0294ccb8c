/**
 * A process that runs several cases at once, each a command line of the built product or a worker. It is killed when each is
 * paused at its step or has ended. Starting a process costs more than a case, so one serves
 * many. Reads the cases as JSON from stdin, and prints the result of each before the kill.
 */
import { writeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import './watch-files.mjs';
import './watch-http.mjs';
import './watch-postgres.mjs';
import { createCase, within } from './steps.mjs';

const { run } = await import('../../../dist/cli/program.js');
const { createLog } = await import('../../../dist/app/environment.js');
const given = JSON.parse(await text(process.stdin));
if (given.some(({ worker }) => worker)) await import('./watch-redis.mjs');

const createSilentLog = () => createLog({ level: 'silent' });

async function runCommand({ argv }, say) {
  const terminal = {
    out: () => {},
    say: () => {},
    err: say,
    hasReader: () => true,
    isInteractive: false,
    live: () => {},
    isScreen: false,
    columns: 80,
  };
  return run(argv, { terminal, signal: new AbortController().signal, createLog: createSilentLog });
}

/** Leaves after one run. */
async function runWorker({ worker: { config, pace } }, say) {
  const { runWorkerApp } = await import('../../../dist/app/worker.js');
  const stop = new AbortController();
  let code = 1;
  const onRun = ({ state, fault }) => {
    if (fault) say(fault.message);
    code = state === 'done' ? 0 : 1;
    stop.abort();
  };
  await runWorkerApp({ config, pace, signal: stop.signal, log: createSilentLog(), onRun });
  return code;
}

async function play(doomed) {
  const one = createCase(doomed.at);
  let said = '';
  const say = (words) => {
    said += words;
  };
  const through = within(one, () => (doomed.worker ? runWorker : runCommand)(doomed, say));
  const code = await Promise.race([through, one.stood]);
  return { isStill: one.isStill, code, said, steps: doomed.at === undefined ? one.steps : [] };
}

const ends = await Promise.all(given.map(play));
writeSync(1, JSON.stringify(ends));
process.kill(process.pid, 'SIGKILL');
