import { chooseTracks, type KnownTrack, knownTracks, reportTrack } from '../../cursor/cursors.ts';
import { holderOf } from '../../cursor/leases.ts';
import { type MoveDeps, moveCursor, resetCursor } from '../../sync/maintain/move-cursor.ts';
import { checkConfirmed, chooseDate } from '../choices.ts';
import type { ControlDeps } from '../dependencies.ts';
import { HttpError } from '../http-error.ts';
import { type Route, route } from '../route.ts';
import { date, flag, list, moment, named, object, orNull, shortText, stream, text, type z } from '../shapes.ts';

const Cursors = named(
  'Cursors',
  object({
    cursors: list(
      object({
        source: text,
        stream,
        sink: text,
        since: moment,
        completeThrough: orNull(moment),
        newestSeen: orNull(moment),
        updatedAt: moment,
      }),
    ),
  }),
);
export type Cursors = z.infer<typeof Cursors>;

const CursorRequest = named(
  'CursorRequest',
  object({
    source: shortText.optional().describe('needed where several sources have the stream'),
    streams: list(stream).min(1).max(3),
    sink: shortText.optional().describe('every sink unless told'),
  }),
);
const CursorMove = named(
  'CursorMove',
  CursorRequest.extend({
    to: date,
    force: flag
      .default(false)
      .describe('also forward, over time that was never read: events may be missing there for good'),
  }),
);
const CursorReset = named(
  'CursorReset',
  CursorRequest.extend({ confirm: shortText.describe('the name of the source: everything of it is read again') }),
);
type CursorRequest = z.infer<typeof CursorRequest>;

type Deps = Pick<ControlDeps, 'state' | 'sinks'>;

const noteOf = (action: string, { source, streams, sink }: CursorRequest, detail = {}) => ({
  action,
  target: streams.map((name) => `${source ?? '*'}/${name}`).join(', '),
  detail: { ...(sink !== undefined && { sink }), ...detail },
});

export const cursorRoutes = (deps: Deps): Route[] => [
  route({
    method: 'GET',
    path: '/api/cursors',
    summary: 'How far each stream is proven, in each sink.',
    role: 'read',
    query: object({ source: shortText, stream, sink: shortText }).partial(),
    answer: Cursors,
    handle: async ({ query: { source, stream: name, sink } }) => {
      const tracks = await knownTracks(deps.state);
      const chosen = tracks.filter((track) => name === undefined || track.stream === name);
      return { cursors: chooseTracks(chosen, { source, sink }).map(reportTrack) };
    },
  }),
  route({
    method: 'POST',
    path: '/api/cursors/move',
    summary: 'Moves watermarks back, so that the next sync reads again from there; forward only by force.',
    role: 'admin',
    body: CursorMove,
    answer: Cursors,
    audit: ({ body }) => noteOf('cursor.move', body, { to: body.to, force: body.force }),
    handle: ({ body }) => move(deps, body),
  }),
  route({
    method: 'POST',
    path: '/api/cursors/reset',
    summary: 'Forgets how far streams have come; their rows stay, and the next sync reads everything again.',
    role: 'admin',
    body: CursorReset,
    answer: Cursors,
    audit: ({ body }) => noteOf('cursor.reset', body),
    handle: ({ body }) =>
      change(deps, body, (moving, track) => {
        checkConfirmed(body.confirm, track.source);
        return resetCursor(moving, track);
      }),
  }),
];

async function move(deps: Deps, body: z.infer<typeof CursorMove>): Promise<Cursors> {
  const { force } = body;
  const to = chooseDate('to', body.to);
  if (to > Date.now())
    throw new HttpError(409, 'to lies in the future', {
      next: 'give a moment that has passed: nothing later can be complete',
    });
  return change(deps, body, (moving, track) => moveCursor(moving, track, { to, force }));
}

async function change(
  { state, sinks }: Deps,
  { source, streams, sink }: CursorRequest,
  work: (deps: MoveDeps, track: KnownTrack) => Promise<void>,
): Promise<Cursors> {
  const tracks = chooseTracks(await knownTracks(state), { source, streams, sink });
  if (tracks.length === 0) throw new HttpError(404, 'there is no such cursor', { next: 'see GET /api/cursors' });
  const sources = new Set(tracks.map((track) => track.source));
  // Several sinks of one source belong together; several sources are an accident.
  if (sources.size > 1)
    throw new HttpError(409, 'several sources have this stream', { next: `add source: ${[...sources].join(', ')}` });
  for (const track of tracks) await work({ state, sinks, holder: holderOf('control room') }, track);
  return { cursors: chooseTracks(await knownTracks(state), { source, streams, sink }).map(reportTrack) };
}
