import * as z from 'zod';
import { hostFault } from '../api/base-url.ts';
import { checkFilters, filterSchema } from '../api/filters.ts';
import { requestsPerSecond as budgetOf } from '../api/plans.ts';
import { INCIDENT_KINDS } from '../jobs/incidents.ts';
import { cronFault, isTimezone } from '../jobs/schedule.ts';
import { parseInstant } from '../model/instant.ts';
import { DEFAULT_PRIVACY, hashesAnything, SHORTEST_SALT, TREATMENTS } from '../model/privacy.ts';
import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { HOUR_MS, MINUTE_MS } from '../model/window.ts';
import { UNKNOWN_FIELDS } from '../sync/schema-evolution.ts';
import { keepFault, sharedTargets, sink } from './sinks.ts';
import {
  baseUrl,
  databaseUrl,
  duration,
  http,
  isDuration,
  name,
  optionalText,
  plan,
  requestsPerSecond,
} from './values.ts';

/** The config file's shape: checked here, documented in config/tributary.yaml, and printed for editors as a JSON schema. */

const redisUrl = optionalText.refine((url) => url === undefined || /^rediss?:\/\/./.test(url), {
  message: 'must begin with redis:// or rediss://',
});

const A_BEGINNING = 'must be a date (2026-01-01), a duration back from the first sync (30d), or all';
const since = z
  .string(A_BEGINNING)
  .refine((text) => text === 'all' || isDuration(text) || parseInstant(text) !== undefined, A_BEGINNING)
  .refine((text) => !((parseInstant(text) ?? 0) > Date.now()), 'is in the future: nothing would be read before then')
  .default('30d')
  .describe('where history begins: a date, a duration before the first sync, or all');

const streamFields = (stream: StreamName) =>
  z.strictObject({
    every: duration
      .optional()
      .describe(`how often to look for new events; default ${stream === 'clicks' ? '5m' : '1m'}`),
    cron: z.string().optional().describe('instead of every: minute, hour, day, month and weekday, such as 0 6 * * *'),
    timezone: z
      .string()
      .refine(isTimezone, 'is not a time zone, such as Europe/Berlin or UTC')
      .optional()
      .describe('time zone of cron; default UTC'),
    maxLag: duration
      .optional()
      .describe(
        'how far behind the stream may be before an alert is sent; default 1h, or settle plus four times every if that is longer; none with cron',
      ),
    lookback: duration.default(15 * MINUTE_MS).describe('how far before the watermark each poll reads again'),
    settle: duration.default(10 * MINUTE_MS).describe('how late events may arrive; nothing more recent is certified'),
    resweep: duration.optional().describe('how far back to read again every night, for backdated events'),
    unknownFields: z
      .enum(UNKNOWN_FIELDS)
      .default('evolve')
      .describe('undeclared fields: evolve adds columns, extra keeps them in _extra, freeze stops the stream'),
    filters: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ description: 'query parameters of GET /events that narrow the stream', ...filterSchema(stream) })
      .transform((filters, context) => {
        const { query, faults, warnings } = checkFilters(stream, filters);
        for (const fault of faults) context.addIssue({ code: 'custom', message: fault.message, path: [...fault.path] });
        return { query, warnings };
      }),
  });

const streamOf = (stream: StreamName) =>
  streamFields(stream)
    .superRefine((settings, context) => {
      for (const { path, message } of timingFaults(settings))
        context.addIssue({ code: 'custom', path: [path], message });
    })
    .transform(({ cron, timezone, every = stream === 'clicks' ? 5 * MINUTE_MS : MINUTE_MS, ...rest }) => {
      if (cron !== undefined) return { ...rest, schedule: { cron, timezone: timezone ?? 'UTC' } };
      // Without this default, a stream without a configured target would never count as late.
      const maxLag = rest.maxLag ?? Math.max(HOUR_MS, rest.settle + 4 * every);
      return { ...rest, maxLag, schedule: { every } };
    });

type Timing = Pick<z.output<ReturnType<typeof streamFields>>, 'every' | 'cron' | 'timezone' | 'maxLag' | 'settle'>;

/** Faults of settings that are valid alone, but not together. */
function timingFaults({ every, cron, timezone, maxLag, settle }: Timing): Array<{ path: string; message: string }> {
  const faults: Array<{ path: string; message: string }> = [];
  if (cron !== undefined && every !== undefined)
    faults.push({ path: 'cron', message: 'cannot be combined with every: keep one of them' });
  if (cron === undefined && timezone !== undefined) faults.push({ path: 'timezone', message: 'is only for cron' });
  const fault = cron === undefined ? undefined : cronFault(cron, timezone ?? 'UTC');
  if (fault !== undefined) faults.push({ path: 'cron', message: fault });
  if (maxLag !== undefined && maxLag <= settle + (every ?? 0)) {
    faults.push({
      path: 'maxLag',
      message: 'must be longer than settle and every together, or the stream is always late',
    });
  }
  return faults;
}

const streams = z
  .strictObject({
    clicks: streamOf('clicks').optional(),
    leads: streamOf('leads').optional(),
    sales: streamOf('sales').optional(),
  })
  .refine((chosen) => Object.keys(chosen).length > 0, {
    error: 'is empty: name a stream, or omit streams to sync all three',
    // A mistyped stream name is one fault, not two.
    when: ({ issues }) => issues.length === 0,
  });

const links = z
  .strictObject({
    every: duration.describe('how often to list all links, such as 1d'),
    history: z.boolean().default(false).describe('also keep earlier versions of links, in links_history (Postgres)'),
    maxLag: duration
      .optional()
      .describe('how old the last complete listing may be before an alert is sent; default twice every plus 1h'),
  })
  .refine(({ every, maxLag }) => maxLag === undefined || maxLag > every, {
    path: ['maxLag'],
    error: 'must be longer than every, or the listing is always late',
  })
  .transform(({ maxLag, ...rest }) => ({ ...rest, maxLag: maxLag ?? 2 * rest.every + HOUR_MS }));

/** `when` of checks that also run if other keys have faults, so that all are reported at once. */
const isMapping = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

const source = z
  .strictObject({
    baseUrl: baseUrl('address of the service: https, or http on a loopback host'),
    apiKey: z.string().min(1, 'must not be empty').describe('a secret: take it from the environment'),
    plan,
    requestsPerSecond,
    since,
    streams: streams.default(() => allStreams()),
    links: links
      .optional()
      .describe(
        'lists all links (GET /links), including archived ones and those without events; absent: only links that had an event',
      ),
  })
  .superRefine(
    (value, context) => {
      // A value that is not a number has its own fault already.
      for (const { key, message } of budgetOf(value).faults)
        if (key === 'plan' || Number.isFinite(value.requestsPerSecond))
          context.addIssue({ code: 'custom', path: [key], message });
    },
    { when: isMapping },
  )
  .transform((value) => ({ ...value, requestsPerSecond: budgetOf(value).value ?? 0 }));

const treatment = (of: keyof typeof TREATMENTS, what: string) =>
  z.enum(TREATMENTS[of]).default(DEFAULT_PRIVACY[of]).describe(what);

const privacy = z
  .strictObject({
    linkPassword: treatment('linkPassword', 'passwords of links, which the service sends in plain text'),
    ip: treatment('ip', 'addresses of visitors; truncate keeps the network'),
    customer: treatment('customer', 'names, e-mail addresses and avatars of customers'),
    salt: optionalText
      .refine(
        (text) => text === undefined || text.length >= SHORTEST_SALT,
        `must have at least ${SHORTEST_SALT} characters`,
      )
      .describe('the key of the hashes, required for hash; a secret: take it from the environment'),
  })
  .refine(({ salt, ...treatments }) => salt !== undefined || !hashesAnything(treatments), {
    path: ['salt'],
    error:
      'is missing: hash needs a secret (openssl rand -hex 32 makes one), or the hashes could be reversed by trying every address',
    when: isMapping,
  });

const alerts = z.strictObject({
  webhook: optionalText
    .superRefine((url, context) => {
      if (url === undefined) return;
      const message = URL.canParse(url) ? hostFault(new URL(url)) : 'must be a URL, https://…';
      if (message) context.addIssue({ code: 'custom', message });
    })
    .describe(
      'receives a POST with JSON when a stream is parked, failing, late or not certified, and when that is over; a secret',
    ),
  mute: z
    .array(z.enum(INCIDENT_KINDS))
    .default([])
    .describe(`kinds that are only logged, not sent to the webhook: ${INCIDENT_KINDS.join(', ')}`),
});

export const configSchema = z
  .strictObject({
    sources: z.record(name, source).default({}).describe('one for each workspace, under a name that you choose'),
    sinks: z
      .record(name, sink)
      .refine(
        (sinks) => Object.keys(sinks).length > 0,
        'is empty: name a sink, or omit sinks for tables in the state database',
      )
      .default(() => ({ warehouse: sink.parse({ type: 'postgres' }) }))
      .describe('where rows are written, each under a name that you choose; absent: tables in the state database'),
    state: z
      .strictObject({
        url: databaseUrl.describe('postgresql://user:password@host/database; take it from the environment'),
        directUrl: databaseUrl.describe(
          'if url points to a pooler such as PgBouncer: the URL of the database itself, for the queue',
        ),
        retention: duration
          .prefault('90d')
          .describe('how long runs, incidents and finished backfills are kept; the audit trail is kept for ever'),
      })
      .prefault({})
      .describe('cursors, ledger and history; absent: an embedded Postgres under .tributary/'),
    queue: z
      .strictObject({
        url: redisUrl.describe('redis:// or rediss://; Redis 6.2 or newer with maxmemory-policy noeviction'),
      })
      .default({ url: undefined })
      .describe('for the worker; absent: the queue is in the state database'),
    alerts: alerts.prefault({}).describe('for the worker: where to send alerts'),
    privacy: privacy.prefault({}).describe('how personal data is treated before it is written anywhere'),
    http: http.prefault({}).describe('for start: the control room, health and metrics'),
  })
  .superRefine(({ sources, sinks, state }, context) => {
    for (const { name, fault } of sharedTargets(sinks, state.url))
      context.addIssue({ code: 'custom', path: ['sinks', name], message: fault });
    for (const [name, { keep = Number.POSITIVE_INFINITY }] of Object.entries(sinks)) {
      const message = keepFault(keep, sources);
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['sinks', name, 'keep'], message });
    }
  });

export type ConfigIssue = z.core.$ZodIssue;
export type Config = z.output<typeof configSchema>;
/** The config as it is written, in a file or as an object for the library. */
export type ConfigInput = z.input<typeof configSchema>;
export const configJsonSchema = () => z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
export const sinceFault = (text: string): string | undefined => since.safeParse(text).error?.issues[0]?.message;
export type SourceConfig = Config['sources'][string];
export type LinksConfig = z.output<typeof links>;
export type StreamConfig = z.output<ReturnType<typeof streamOf>>;

function allStreams(): z.output<typeof streams> {
  return Object.fromEntries(STREAM_NAMES.map((stream) => [stream, streamOf(stream).parse({})]));
}
