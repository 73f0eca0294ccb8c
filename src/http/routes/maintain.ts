import { chooseFeeds, knownFeeds, reportFeed } from '../../cursor/cursors.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { knownSources } from '../../cursor/forgotten.ts';
import type { Erasure } from '../../sinks/sink.ts';
import { auditNoteOf, forget } from '../../sync/maintain/forget.ts';
import { checkMove, type Move, moveCursor, resetCursor } from '../../sync/maintain/move-cursor.ts';
import { date, HttpError, listOf, longText, moment, named, of, shortText, stream, tally, z } from '../answers.ts';
import { type ControlDeps, checkConfirmed, chooseDate, targetOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const Cursors = named('Cursors', {
  cursors: listOf({
    ...of,
    sink: z.string(),
    since: moment,
    completeThrough: moment.nullable(),
    newestSeen: moment.nullable(),
    updatedAt: moment,
  }),
});
export type Cursors = z.infer<typeof Cursors>;

const CursorRequest = named('CursorRequest', {
  source: shortText.optional().describe('required if several sources have the stream'),
  streams: z.array(stream).min(1).max(3),
  sink: shortText.optional().describe('default: every sink'),
});
const CursorMove = named(
  'CursorMove',
  CursorRequest.extend({
    to: date,
    force: z
      .boolean()
      .default(false)
      .describe('also forward, over a range that was never read: events may be missing there permanently'),
  }),
);
const CursorReset = named(
  'CursorReset',
  CursorRequest.extend({ confirm: shortText.describe('the name of the source, all of which is read again') }),
);
/** The id is in the body, because proxies log URLs. */
const ForgetRequest = named(
  'ForgetRequest',
  z.union([
    z.strictObject({ source: shortText, customer: longText }),
    z.strictObject({ source: shortText, click: longText }),
    z.strictObject({
      source: shortText,
      everything: z.literal(true),
      confirm: shortText.describe('the name of the source again: all of its data is deleted'),
    }),
  ]),
);
type ForgetRequest = z.infer<typeof ForgetRequest>;

const Forgotten = named('Forgotten', { touched: tally.describe('rows, by table or place') });

export type Forgotten = z.infer<typeof Forgotten>;

type CursorRequest = z.infer<typeof CursorRequest>;

type Deps = Pick<ControlDeps, 'state' | 'sinks' | 'streams'>;

const noteOf = (action: string, body: CursorRequest, detail = {}) => ({
  action,
  target: targetOf(body),
  detail: { ...(body.sink !== undefined && { sink: body.sink }), ...detail },
});

export const maintainRoutes = (deps: Deps): Route[] => [
  route('GET /api/cursors', {
    summary: 'How far each stream is certified in each sink.',
    query: z.strictObject({ source: shortText, stream, sink: shortText }).partial(),
    answer: Cursors,
    handle: async ({ query: { source, stream: name, sink } }) => {
      const feeds = await knownFeeds(deps.state);
      const chosen = feeds.filter((feed) => name === undefined || feed.stream === name);
      return { cursors: chooseFeeds(chosen, { source, sink }).map(reportFeed) };
    },
  }),
  route('POST /api/cursors/move', {
    summary: 'Moves watermarks back, so that the next sync reads again from there; forward only with force.',
    role: 'admin',
    body: CursorMove,
    answer: Cursors,
    audit: ({ body }) => noteOf('cursor.move', body, { to: body.to, force: body.force }),
    async handle({ body }) {
      const { force } = body;
      const to = chooseDate('to', body.to);
      if (to > Date.now())
        throw new HttpError(409, 'to is in the future', {
          next: 'give a time in the past: nothing later can be complete',
        });
      return change(deps, body, { to, force });
    },
  }),
  route('POST /api/cursors/reset', {
    summary: 'Resets the cursors of streams; rows stay, and the next sync reads everything again.',
    role: 'admin',
    body: CursorReset,
    answer: Cursors,
    audit: ({ body }) => noteOf('cursor.reset', body),
    handle: ({ body }) => change(deps, body, body.confirm),
  }),
  route('POST /api/forget', {
    summary: 'Erases a customer, a click or a whole source from every sink and the state. It cannot be undone.',
    role: 'admin',
    body: ForgetRequest,
    answer: Forgotten,
    audit: ({ body }) => auditNoteOf(erasureOf(body)),
    handle({ body }) {
      if ('everything' in body) checkConfirmed(body.confirm, body.source);
      return erase(deps, erasureOf(body));
    },
  }),
];

/** Moves cursors, or resets those of a confirmed source. */
async function change(
  { state, sinks }: Deps,
  { source, streams, sink }: CursorRequest,
  how: Move | string,
): Promise<Cursors> {
  const feeds = chooseFeeds(await knownFeeds(state), { source, streams, sink });
  if (feeds.length === 0) throw new HttpError(404, 'there is no such cursor', { next: 'see GET /api/cursors' });
  const sources = new Set(feeds.map((feed) => feed.source));
  // Several sinks of one source make sense; several sources are probably a mistake.
  if (sources.size > 1)
    throw new HttpError(409, 'several sources have this stream', { next: `add source: ${[...sources].join(', ')}` });
  for (const feed of feeds)
    if (typeof how === 'string') checkConfirmed(how, feed.source);
    else await checkMove(state, feed, how);
  const deps = { state, sinks, holder: holderOf('control room') };
  for (const feed of feeds) await (typeof how === 'string' ? resetCursor(deps, feed) : moveCursor(deps, feed, how));
  return { cursors: chooseFeeds(await knownFeeds(state), { source, streams, sink }).map(reportFeed) };
}

async function erase({ state, sinks, streams }: Deps, erasure: Erasure): Promise<Forgotten> {
  const known = new Set([...streams.map(({ source }) => source), ...(await knownSources(state))]);
  // Otherwise "nothing found" would mislead a user who mistyped the source.
  if (!known.has(erasure.source))
    throw new HttpError(404, 'there is no such source, neither in the config nor in the state', {
      kept: 'nothing was changed',
      next: `use one of: ${[...known].join(', ')}`,
    });
  return { touched: await forget({ state, sinks, holder: holderOf('control room') }, erasure) };
}

function erasureOf(request: ForgetRequest): Erasure {
  const { source } = request;
  if ('customer' in request) return { source, kind: 'customer', id: request.customer };
  return 'click' in request ? { source, kind: 'click', id: request.click } : { source, kind: 'source' };
}
