import { syncNow } from '../../jobs/backfills.ts';
import { chooseStreams } from '../choices.ts';
import type { ControlDeps } from '../deps.ts';
import { type Route, route } from '../route.ts';
import { list, named, object, shortText, stream, text, type z } from '../shapes.ts';

const SyncRequest = named(
  'SyncRequest',
  object({
    source: shortText.optional().describe('all sources unless told'),
    streams: list(stream).max(3).optional().describe('all streams unless told'),
  }),
);
const SyncStarted = named('SyncStarted', object({ streams: list(object({ source: text, stream })) }));
export type SyncStarted = z.infer<typeof SyncStarted>;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'streams'>;

export const syncRoute = (deps: Deps): Route =>
  route({
    method: 'POST',
    path: '/api/sync',
    summary: 'Streams are due now, and the worker takes them up. Those that are at it already are left alone.',
    role: 'operator',
    uses: ['state', 'queue'],
    body: SyncRequest,
    status: 202,
    answer: SyncStarted,
    audit: ({ body: { source = '*', streams = ['*'] } }) => ({
      action: 'sync.start',
      target: streams.map((name) => `${source}/${name}`).join(', '),
    }),
    async handle({ body }) {
      const started: SyncStarted['streams'] = [];
      for (const { source, stream: name } of chooseStreams(deps.streams, body)) {
        if (await syncNow(deps, { source, stream: name })) started.push({ source, stream: name });
      }
      return { streams: started };
    },
  });
