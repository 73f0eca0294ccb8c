import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createLog } from '../../src/app/environment.ts';
import { runWorkerApp } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import type { Timings } from '../../src/jobs/schedule.ts';

/**
 * A worker in a separate process: `worker-child.ts CONFIG TIMINGS`. Prints a line when it is ready, one for
 * each run, and at its end the longest time that it blocked the event loop.
 */
const config = JSON.parse(process.argv[2] ?? '{}') as Config;
const timings = JSON.parse(process.argv[3] ?? '{}') as Partial<Timings>;
const stop = new AbortController();
process.on('SIGTERM', () => {
  if (stop.signal.aborted) process.exit(130);
  stop.abort();
});
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const delay = monitorEventLoopDelay({ resolution: 20 });
delay.enable();
await runWorkerApp({
  config,
  log: createLog({ level: 'warn' }),
  signal: stop.signal,
  timings,
  onReady: () => say({ ready: true }),
  onRun: ({ source, stream, state, tally, fault }) =>
    say({ source, stream, state, new: tally.new, fault: fault?.message }),
});
say({ longestMs: delay.max / 1e6 });
