import { holderOf } from '../../cursor/leases.ts';
import { chooseTracks, type KnownTrack, knownTracks, reportTrack } from '../../cursor/tracks.ts';
import { type MoveDeps, moveCursor, resetCursor } from '../../sync/move-cursor.ts';
import type { CursorMove, CursorRequest, Cursors } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { shortText, stream } from '../json-schema.ts';
import { dateOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'sinks'>;

export const cursorRoutes = (deps: Deps): Route[] => [
  {
    method: 'GET',
    path: '/api/cursors',
    summary: 'How far each stream is proven, in each sink.',
    query: { source: shortText, stream, sink: shortText },
    answer: 'Cursors',
    handle: async ({ params: { source, stream: name, sink } }): Promise<Cursors> => {
      const tracks = await knownTracks(deps.state);
      const chosen = tracks.filter((track) => name === undefined || track.stream === name);
      return { cursors: chooseTracks(chosen, { source, sink }).map(reportTrack) };
    },
  },
  {
    method: 'POST',
    path: '/api/cursors/move',
    summary: 'Moves watermarks back, so that the next sync reads again from there; forward only by force.',
    body: 'CursorMove',
    answer: 'Cursors',
    handle: (ask) => move(deps, ask),
  },
  {
    method: 'POST',
    path: '/api/cursors/reset',
    summary: 'Forgets how far streams have come; their rows stay, and the next sync reads everything again.',
    body: 'CursorRequest',
    answer: 'Cursors',
    handle: (ask) => change(deps, ask, resetCursor),
  },
];

async function move(deps: Deps, ask: Ask): Promise<Cursors> {
  const { to: text, force = false } = ask.body as CursorMove;
  const to = dateOf('to', text);
  if (to > Date.now())
    throw new Refusal(400, 'to lies in the future', {
      next: 'give a moment that has passed: nothing later can be complete',
    });
  return change(deps, ask, (moving, track) => moveCursor(moving, track, { to, force }));
}

async function change(
  { state, sinks }: Deps,
  { body }: Ask,
  work: (deps: MoveDeps, track: KnownTrack) => Promise<void>,
): Promise<Cursors> {
  const { source, streams, sink } = body as CursorRequest;
  const tracks = chooseTracks(await knownTracks(state), { source, streams, sink });
  if (tracks.length === 0) throw new Refusal(404, 'there is no such cursor', { next: 'see GET /api/cursors' });
  const sources = new Set(tracks.map((track) => track.source));
  // Several sinks of one source belong together; several sources are an accident.
  if (sources.size > 1)
    throw new Refusal(400, 'several sources have this stream', { next: `add source: ${[...sources].join(', ')}` });
  for (const track of tracks) await work({ state, sinks, holder: holderOf('control room') }, track);
  return { cursors: chooseTracks(await knownTracks(state), { source, streams, sink }).map(reportTrack) };
}
