import { hurryProbe } from '../../cursor/parked.ts';
import { isLeased, planSource } from '../../cursor/schedules.ts';
import { syncHint } from '../../jobs/payloads.ts';
import type { SyncStarted } from '../api-types.ts';
import { chooseStreams } from '../choose.ts';
import type { ControlDeps } from '../deps.ts';
import type { Ask, Route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'streams'>;

export const syncNowRoute = (deps: Deps): Route => ({
  method: 'POST',
  path: '/api/sync',
  summary: 'Streams are due now, and the worker takes them up. Those that are at it already are left alone.',
  body: 'SyncRequest',
  status: 202,
  answer: 'SyncStarted',
  handle: (ask) => syncNow(deps, ask),
});

async function syncNow({ state, queue, streams }: Deps, { body }: Ask): Promise<SyncStarted> {
  const chosen = chooseStreams(streams, body as Parameters<typeof chooseStreams>[1]);
  const started: SyncStarted['streams'] = [];
  for (const { source, stream } of chosen) {
    if (await isLeased(state, source, stream)) continue;
    await hurryProbe(state, source, stream);
    await planSource(state, source, stream, Date.now());
    await queue.hint('sync', syncHint({ source, stream }));
    started.push({ source, stream });
  }
  return { streams: started };
}
