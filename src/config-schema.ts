import { z } from 'zod';
import { checkBaseUrl } from './api/base-url.ts';
import { checkFilters } from './api/filters.ts';
import { PLAN_NAMES, requestsPerSecond } from './api/plans.ts';
import { parseDuration } from './model/dates.ts';
import { parseInstant } from './model/instant.ts';
import { DEFAULT_PRIVACY, TREATMENTS } from './model/privacy.ts';
import { STREAM_NAMES, type StreamName } from './model/streams.ts';

/** The config file's shape: checked here, documented in config/tributary.yaml, and printed for editors as a JSON schema. */

const MINUTE_MS = 60_000;

/** Names become parts of SQL, paths and keys; these characters are safe in all of them. */
const name = z.string().regex(/^[a-z][a-z0-9_-]{0,39}$/, 'names are lower-case letters, digits, _ and -, at most 40');

const duration = z
  .string()
  .refine((text) => (parseDuration(text) ?? 0) > 0, 'must be a duration such as 90s, 15m, 1h or 7d')
  .transform((text) => parseDuration(text) ?? 0);

/** What the environment filled in is text; a number is meant. */
const number = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'must be a number')
    .transform(Number),
]);

/** An empty value is an unset variable: `${DATABASE_URL:-}`. */
const optionalUrl = (schemes: readonly string[]) =>
  z
    .string()
    .optional()
    .transform((url) => url || undefined)
    .refine((url) => url === undefined || schemes.some((scheme) => url.startsWith(`${scheme}://`)), {
      message: `must begin with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
    });

const since = z
  .string()
  .refine(
    (text) => text === 'all' || parseDuration(text) !== undefined || parseInstant(text) !== undefined,
    'must be a date (2026-01-01), a duration back from the first sync (30d), or all',
  )
  .default('30d');

const streamOf = (stream: StreamName) =>
  z.strictObject({
    every: duration
      .default(stream === 'clicks' ? 5 * MINUTE_MS : MINUTE_MS)
      .describe('how often to look for new events'),
    lookback: duration.default(15 * MINUTE_MS).describe('how far before the watermark each poll reads again'),
    settle: duration.default(10 * MINUTE_MS).describe('how late events may arrive; nothing younger is called complete'),
    resweep: duration.optional().describe('how far back to read again every night, for backdated events'),
    filters: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('query parameters of GET /events that narrow the stream')
      .transform((filters, context) => {
        const { query, faults, warnings } = checkFilters(stream, filters);
        for (const fault of faults) context.addIssue({ code: 'custom', message: fault.message, path: [...fault.path] });
        return { query, warnings };
      }),
  });

const streams = z.strictObject({
  clicks: streamOf('clicks').optional(),
  leads: streamOf('leads').optional(),
  sales: streamOf('sales').optional(),
});

const source = z
  .strictObject({
    baseUrl: z.string().transform((url, context) => {
      const checked = checkBaseUrl(url);
      if ('value' in checked) return checked.value;
      context.addIssue({ code: 'custom', message: checked.fault });
      return z.NEVER;
    }),
    apiKey: z.string().min(1, 'must not be empty').describe('a secret: take it from the environment'),
    plan: z.enum(PLAN_NAMES),
    requestsPerSecond: number.optional(),
    since,
    streams: streams.default(() => allStreams()),
  })
  .transform((value, context) => {
    const budget = requestsPerSecond(value);
    if ('value' in budget) return { ...value, requestsPerSecond: budget.value };
    context.addIssue({ code: 'custom', message: budget.fault, path: ['plan'] });
    return z.NEVER;
  });

const postgresSink = z.strictObject({
  type: z.literal('postgres'),
  url: optionalUrl(['postgres', 'postgresql']).describe('absent: the state database'),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'must be a plain lower-case Postgres name')
    .default('attribution'),
});

const parquetSink = z.strictObject({
  type: z.literal('parquet'),
  path: z.string().min(1).describe('a folder, or s3://bucket/prefix'),
  partition: z.enum(['day', 'hour']).default('day'),
  compression: z.enum(['zstd', 'snappy', 'gzip']).default('zstd'),
});

const sink = z.discriminatedUnion('type', [postgresSink, parquetSink], { error: 'must be postgres or parquet' });

const treatment = (of: keyof typeof TREATMENTS) => z.enum(TREATMENTS[of]).default(DEFAULT_PRIVACY[of]);

const privacy = z.strictObject({
  linkPassword: treatment('linkPassword'),
  ip: treatment('ip'),
  customer: treatment('customer'),
});

const http = z.strictObject({
  host: z.string().default('127.0.0.1'),
  port: number.default(7070),
  token: z
    .string()
    .optional()
    .transform((token) => token || undefined),
});

export const configSchema = z.strictObject({
  sources: z.record(name, source).default({}),
  sinks: z.record(name, sink).default(() => ({ warehouse: sink.parse({ type: 'postgres' }) })),
  state: z
    .strictObject({ url: optionalUrl(['postgres', 'postgresql']) })
    .default({ url: undefined })
    .describe('absent: an embedded Postgres under .tributary/'),
  queue: z
    .strictObject({ url: optionalUrl(['redis', 'rediss']) })
    .default({ url: undefined })
    .describe('for the worker. absent: the queue lives in the state database'),
  privacy: privacy.default(DEFAULT_PRIVACY),
  http: http.prefault({}).describe('for start: health, metrics and the dashboard'),
});

export type ConfigIssue = z.core.$ZodIssue;
export type Config = z.output<typeof configSchema>;
export type SourceConfig = Config['sources'][string];
export type SinkConfig = Config['sinks'][string];
export type StreamConfig = z.output<ReturnType<typeof streamOf>>;

function allStreams(): z.output<typeof streams> {
  return Object.fromEntries(STREAM_NAMES.map((stream) => [stream, streamOf(stream).parse({})]));
}
