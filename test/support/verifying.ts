import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { holderOf } from '../../src/cursor/database/holders.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../src/model/window.ts';
import type { StreamJob, SyncDeps } from '../../src/sync/job.ts';
import { totalOf, type VerifyResult } from '../../src/sync/maintain/comparison.ts';
import { verifyStream } from '../../src/sync/maintain/verify.ts';
import type { Sandbox } from './odd-service/service.ts';
import { smallSandbox } from './sandbox.ts';
import { silentLog } from './silent-log.ts';

/** Ten days of a service, and a comparison of the sinks with it. */

export const TODAY = startOfDay(Date.now());
export const tenDays = (): Promise<Sandbox> =>
  smallSandbox({ rows: { clicks: 1300, leads: 200, sales: 100 }, days: 10 });
export const lately = (): Window => ({ start: TODAY - 11 * DAY_MS, end: Date.now() });

/** Runs a job on one stream of the config. */
export function withJob<T>(
  config: Config,
  stream: StreamName,
  work: (deps: SyncDeps, job: StreamJob) => Promise<T>,
): Promise<T> {
  const { signal } = new AbortController();
  return withSyncApp({ config, log: silentLog, choice: { streams: [stream] } }, ({ state, sinks, jobs: [job] }) => {
    if (!job) throw new Error('a job');
    return work({ state, sinks, log: silentLog, signal, holder: holderOf('verify'), onProgress: () => {} }, job);
  });
}

export const verify = (config: Config, stream: StreamName = 'clicks'): Promise<VerifyResult> =>
  withJob(config, stream, (deps, job) => verifyStream(deps, job, lately()));

export const counts = ({ sinks: [sink] }: VerifyResult) => sink && totalOf(sink);
