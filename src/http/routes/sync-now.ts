import { syncNow } from '../../jobs/sync-now.ts';
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
  handle: (ask) => startSyncs(deps, ask),
});

async function startSyncs(deps: Deps, { body }: Ask): Promise<SyncStarted> {
  const chosen = chooseStreams(deps.streams, body as Parameters<typeof chooseStreams>[1]);
  const started: SyncStarted['streams'] = [];
  for (const { source, stream } of chosen) {
    if (await syncNow(deps, { source, stream })) started.push({ source, stream });
  }
  return { streams: started };
}
