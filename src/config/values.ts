import { isIP } from 'node:net';
import * as z from 'zod';
import { checkBaseUrl } from '../api/base-url.ts';
import { PLAN_NAMES } from '../api/plans.ts';
import { addressOf } from '../cursor/database/errors.ts';
import { ConfigError } from '../model/errors.ts';
import { parseDuration, parseInstant } from '../model/instant.ts';
import { DAY_MS } from '../model/window.ts';
import { lakePathFault } from '../sinks/parquet/lake.ts';

/** Whether a key of this name holds a secret, anywhere in the config. `linkPassword` is a privacy setting, not a secret. */
export const isSecretKey = (key: string): boolean =>
  /secret|token|accessKey|credential|apiKey|salt|webhook|(?<!link)password/i.test(key);

/** Names are used in SQL, paths and keys; these characters are safe in all of them. */
export const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'names are lower-case letters, digits, _ and -, at most 40');

/** Values from the environment are text, so numeric text is accepted as a number. */
const number = z.union(
  [
    z.number(),
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform((digits) => Math.min(Number(digits), Number.MAX_VALUE)),
  ],
  { error: 'must be a number' },
);

const count = number.refine((n) => Number.isInteger(n) && n >= 1, 'must be a whole number of at least 1');

export const namespace = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'must be a plain lower-case Postgres name')
  .default('attribution');

/** Excludes the schemas of Postgres itself, of the state and of the queue. */
export const schemaName = namespace.refine(
  (schema) => !/^(?:pg_.*|information_schema|tributary|tributary_queue)$/.test(schema),
  'belongs to Postgres or to the state of tributary: choose another name',
);

/** A hundred years: anything longer is a typing error, and dates would leave the valid range. */
const LONGEST_MS = 36_500 * DAY_MS;
export const isDuration = (text: string): boolean => (parseDuration(text) ?? Number.POSITIVE_INFINITY) <= LONGEST_MS;

const A_DURATION = 'must be a duration such as 90s, 15m, 1h or 7d';
export const duration = z
  .string(A_DURATION)
  .refine((text) => isDuration(text) && parseDuration(text) !== 0, A_DURATION)
  .transform((text) => parseDuration(text) ?? 0);

export const keepSnapshots = z
  .strictObject({
    all: duration.prefault('1h').describe('how long every snapshot is kept after it was replaced'),
    hourly: duration.prefault('1d').describe('how long one per hour is kept'),
    daily: duration.prefault('30d').describe('how long one per day is kept'),
    most: count.default(500).describe('how many are kept at most'),
  })
  .prefault({})
  .describe('how far back readers can time-travel, and how long a query may take');

/** Octal, as for chmod. YAML parses 0640 as the number 640. */
export const fileMode = z
  .union([z.string(), z.number()], { error: 'must be an octal mode such as 0640' })
  .refine(
    (mode) => /^0?6[0-7]{2}$/.test(String(mode)),
    'must be an octal mode such as 0640, which lets its owner read and write',
  )
  .transform((mode) => Number.parseInt(String(mode), 8))
  .optional()
  .describe('permissions of files in a folder, such as 0640; folders get matching ones; absent: set by the umask');

/** Empty text counts as absent, because `${DATABASE_URL:-}` is empty if the variable is not set. */
export const optionalText = z
  .string()
  .optional()
  .transform((text) => text || undefined);

export const plan = z
  .enum(PLAN_NAMES)
  .describe(
    'pro 2/s, business 4/s, advanced 8/s; enterprise needs requestsPerSecond; free has no budget and is refused. ' +
      'The contract requires Business or higher: on pro the service may answer 403',
  );

export const requestsPerSecond = number
  .optional()
  .describe('less than the plan allows, if other programs also use the key');

/** The audit trail's name for the holder of `http.token`. */
export const OWNER = 'owner';

/** An address, a network, or a name that proxy-addr knows. */
const isProxy = (text: string): boolean => {
  const [address = '', bits = '0', ...rest] = text.split('/');
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  const isNetwork = rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most;
  return isNetwork || ['loopback', 'linklocal', 'uniquelocal'].includes(text);
};

const SHORTEST_TOKEN = 16;
const FEWEST_CHARACTERS = 8;
/** Characters outside of common words, repetitions and sequences. */
const FEWEST_UNPREDICTABLE = 10;

const A_TOKEN = `must have at least ${SHORTEST_TOKEN} characters, ${FEWEST_CHARACTERS} of them different, and not be a word, a sequence or a repetition: openssl rand -hex 32 makes a good one`;

const WORDS = /change.?me|pass.?word|letmein|welcome|default|example|secret|tributary|token|admin|test|hello/g;
/** A character that continues one of these, in either direction, is predictable. */
const SEQUENCES = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'];
const STEPS = new Set(
  SEQUENCES.flatMap((sequence) =>
    [...sequence].flatMap((from, i) => [from + sequence[i + 1], `${sequence[i + 1]}${from}`, from + from]),
  ),
);

/** Whether enough of a token remains without common words, repetitions and sequences. */
function isToken(token: string): boolean {
  if (token.length < SHORTEST_TOKEN || new Set(token).size < FEWEST_CHARACTERS) return false;
  const rest = token
    .toLowerCase()
    .replace(WORDS, ' ')
    .replace(/(.{2,}?)\1+/gs, '$1');
  const unpredictable = [...rest].filter((letter, i, all) => letter !== all[i - 1] && !STEPS.has(all[i - 1] + letter));
  return unpredictable.length >= FEWEST_UNPREDICTABLE;
}

const namedToken = z.strictObject({
  token: z.string().refine(isToken, A_TOKEN).describe('the secret; take it from the environment'),
  role: z
    .enum(['metrics', 'read', 'operator', 'admin'])
    .describe(
      'metrics: /metrics · read: also the page · operator: also sync, backfill, verify, export · admin: everything',
    ),
  expires: z
    .string()
    .refine((text) => parseInstant(text) !== undefined, 'must be a date such as 2027-01-01')
    .transform((text) => parseInstant(text))
    .optional()
    .describe('when it expires'),
});

const httpFields = z.strictObject({
  host: z
    .string()
    .default('127.0.0.1')
    .describe('the address to listen on; an address other than loopback needs a token'),
  port: number
    .refine((port) => Number.isInteger(port) && port >= 0 && port <= 65_535, 'must be a port number')
    .default(7070)
    .describe('0: any free port'),
  token: optionalText
    .refine((token) => token === undefined || isToken(token), A_TOKEN)
    .describe(
      'token of the admin, from the environment; absent: generated at the first start, in .tributary/http-token',
    ),
  tokens: z
    .record(name, namedToken)
    .default({})
    .describe('additional tokens, each under the name that the audit trail shows; SIGHUP reloads them'),
  trustProxy: z
    .union([z.boolean(), z.array(z.string().refine(isProxy, 'must be an address or a network, such as 10.0.0.0/8'))], {
      error: 'must be true, false or a list of addresses',
    })
    .default(false)
    .describe('whether to trust X-Forwarded headers of a proxy: true, or the addresses of proxies'),
  basePath: z
    .string()
    .regex(/^(?:\/[A-Za-z0-9._~-]+)*$/, 'must be a path such as /etl, without a slash at its end')
    .default('')
    .describe('the path under which a proxy serves the page, such as /etl'),
});

/** Names and secrets must be unique: otherwise the audit trail could not tell who did something. */
export const http = httpFields.superRefine(({ token, tokens }, context) => {
  const refuse = (name: string, message: string): void =>
    context.addIssue({ code: 'custom', path: ['tokens', name], message });
  if (token !== undefined && Object.hasOwn(tokens, OWNER))
    refuse(OWNER, `is the name of http.token in the audit trail: choose another, or leave http.token out`);
  const seen = new Set(token === undefined ? [] : [token]);
  for (const [name, one] of Object.entries(tokens)) {
    if (seen.has(one.token)) refuse(name, 'has the same secret as another token: each needs its own');
    seen.add(one.token);
  }
});

export const place = z
  .string()
  .min(1, 'must not be empty')
  .refine((path) => !lakePathFault(path), { error: ({ input }) => lakePathFault(String(input)) });

export const databaseUrl = optionalText.superRefine((url, context) => {
  try {
    if (url !== undefined) addressOf(url);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    context.addIssue({ code: 'custom', message: `${error.message}: ${error.next}` });
  }
});

export const baseUrl = (what: string) =>
  z
    .string()
    .describe(what)
    .transform((url, context) => {
      const checked = checkBaseUrl(url);
      if ('value' in checked) return checked.value;
      context.addIssue({ code: 'custom', message: checked.fault });
      return z.NEVER;
    });
