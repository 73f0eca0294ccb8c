import {
  byName,
  count,
  day,
  flag,
  type JsonSchema,
  list,
  moment,
  object,
  oneOf,
  orNull,
  ref,
  request,
  share,
  shortText,
  stream,
  text,
} from './json-schema.ts';

/** What `api-types-verbs.ts` says, for machines. */

const counts = { events: count, missing: count, extra: count, different: count };
const range = { from: moment, to: moment };

const head = {
  id: text,
  state: oneOf('running', 'done', 'failed', 'cancelled'),
  streams: list(object({ source: text, stream })),
  ...range,
  repair: flag,
  startedAt: moment,
  finishedAt: orNull(moment),
  progress: share,
  clean: orNull(flag),
  message: orNull(text),
};

const verdict = {
  source: text,
  stream,
  ...range,
  against: text,
  requests: count,
  events: count,
  sinks: list(ref('SinkVerdict')),
  notComparable: list(object({ ...range, note: text })),
};

const tracks = { source: shortText, streams: { ...list(stream), minItems: 1 }, sink: shortText };

export const VERB_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  Verifications: object({ verifications: list(object(head)) }),
  Verification: object({
    ...head,
    verdicts: list(
      object({
        ...verdict,
        repaired: orNull(object(verdict)),
        error: orNull(object({ message: text, kept: orNull(text), next: orNull(text) })),
      }),
    ),
  }),
  SinkVerdict: object({
    sink: text,
    ...counts,
    days: list(object({ day, ...counts })),
    neverRead: list(object(range)),
    examples: list(object({ kind: oneOf('missing', 'extra', 'different'), id: text, at: moment, columns: list(text) })),
  }),
  VerifyRequest: request(
    {
      source: shortText,
      streams: list(stream),
      sink: shortText,
      from: shortText,
      to: shortText,
      repair: flag,
      between: { ...list(shortText), minItems: 2, maxItems: 2 },
    },
    'from',
    'to',
  ),
  Cursors: object({
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
  CursorRequest: request(tracks, 'streams'),
  CursorMove: request({ ...tracks, to: shortText, force: flag }, 'streams', 'to'),
  ForgetRequest: request(
    { source: shortText, customer: identity(), click: identity(), everything: { type: 'boolean', enum: [true] } },
    'source',
  ),
  Forgotten: object({ touched: byName(count) }),
  Examination: object({
    findings: list(
      object({
        level: oneOf('ok', 'note', 'fault'),
        subject: text,
        says: text,
        fix: orNull(text),
        mend: orNull(oneOf('config', 'service', 'later')),
      }),
    ),
  }),
  Config: { type: 'object', description: 'as tributary config print shows it; secrets are masked' },
};

/** As it stands in the tables. */
function identity(): JsonSchema {
  return { type: 'string', minLength: 1, maxLength: 1000 };
}
