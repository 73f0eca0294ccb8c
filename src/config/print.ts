import { addressOf } from '../cursor/database/errors.ts';
import { isObject } from '../model/json.ts';
import type { StreamName } from '../model/streams.ts';
import { DAY_MS, HOUR_MS } from '../model/window.ts';
import type { Config } from './schema.ts';
import { isSecretKey } from './values.ts';

/** The effective config for display: defaults filled in, secrets masked. */
export function printable({ sources, sinks, state, queue, alerts, ...rest }: Config): object {
  const { url = 'an embedded Postgres under .tributary/', ...others } = state;
  return shown({
    sources: mapped(sources, ({ apiKey, streams, ...source }) => ({
      ...source,
      apiKey,
      streams: mapped(streams, (settings) => {
        if (!settings) return undefined;
        const { schedule, filters, ...stream } = settings;
        return { ...schedule, ...stream, filters: filters.query };
      }),
    })),
    sinks,
    state: { url, ...others },
    queue: queue.url === undefined ? 'in the state database' : queue,
    alerts: alerts.webhook === undefined ? 'in the log' : alerts,
    ...rest,
  });
}

const mapped = <T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));

const DURATION = /^(every|maxLag|lookback|settle|resweep|retention|keep|all|hourly|daily)$/;

const shown = (settings: object): object =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => {
      if (typeof value === 'string')
        return [name, isSecretKey(name) ? MASK : /^(url|directUrl)$/.test(name) ? masked(value) : value];
      if (typeof value === 'number' && DURATION.test(name)) return [name, durationOf(value)];
      // Filters are query parameters of the service: their `url` is no address of a database.
      return [name, isObject(value) && name !== 'filters' ? shown(value) : value];
    }),
  );

const MASK = '***';

/** As a user would write it: 900000 is 15m. */
function durationOf(ms: number): string {
  const units = [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['m', 60_000],
    ['s', 1000],
  ] as const;
  const [unit, size] = units.find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

/** User, host and database, without the password and without parameters, which may hold one too. */
function masked(url: string): string {
  if (!/^[a-z]+:\/\//i.test(url)) return url;
  if (!/^postgres/.test(url)) {
    const { protocol, host, pathname, password } = new URL(url);
    return `${protocol}//${password === '' ? '' : `${MASK}@`}${host}${pathname}`;
  }
  const { user, host, port, database } = addressOf(url);
  return `postgresql://${user}${new URL(url).password === '' ? '' : `:${MASK}`}@${host}:${port}/${database}`;
}

/** The settings to decide before the first sync. All others have defaults that suit most users. */
export interface Choices {
  baseUrl: string;
  plan: string;
  requestsPerSecond: string | undefined;
  /** The names of the environment variables that hold the key and the database's URL, never the values. */
  keyVariable: string;
  databaseVariable: string;
  streams: readonly StreamName[];
  /** How often all links are listed; undefined: never. */
  links: string | undefined;
  since: string;
  indexes: readonly string[];
  lake: string | undefined;
}

/** A starting config with a comment on every line. */
export function configTemplate(choices: Choices): string {
  const { baseUrl, plan, requestsPerSecond, keyVariable, databaseVariable, streams, links, since, indexes, lake } =
    choices;
  const database = `"\${${databaseVariable}:-}"`;
  return `# yaml-language-server: $schema=./tributary.schema.json
#
# Tributary's config, written by tributary init. \${NAME} reads an environment variable, \${NAME:-default} has a default.
# tributary config check lists every error; tributary doctor checks everything that a sync needs.

sources:
  main:
    # Address of the service.
    baseUrl: ${quoted(baseUrl)}
    # Keep the key in the environment. Never write it here.
    apiKey: \${${keyVariable}}
    # pro 2/s · business 4/s · advanced 8/s · enterprise needs requestsPerSecond
    # The contract requires the Business tier or higher: on pro the service may answer 403.
    plan: ${plan}
${requestsPerSecond === undefined ? '    # requestsPerSecond: 2          # less than the plan allows, if other programs also use the key' : `    requestsPerSecond: ${requestsPerSecond}`}
    # Where the first sync begins: a date, a duration before the first sync, or all. You can move it back later.
    since: ${quoted(since)}
    # A stream that is left out is not synced. An alert is sent when one is further behind than maxLag.
    streams:
${streams.map(streamLine).join('\n')}
    # How often to list all links, including those without clicks. Without it, only links that had an event are known.
    ${links === undefined ? '# links: { every: 1d }' : `links: { every: ${links} }`}

sinks:
  # Tables in Postgres. Without ${databaseVariable} they are in the state database.
  # Indexes: link, customer, click for reports and lookups, synced for incremental models. Each slows down every load.
  warehouse: { type: postgres, url: ${database}, schema: attribution, indexes: [${indexes.join(', ')}] }
${lake === undefined ? '  # Parquet files, one per day and source:\n  # lake: { type: parquet, path: ./data/lake, partition: day }' : `  # Parquet files, one per day and source.\n  lake: { type: parquet, path: ${quoted(lake)}, partition: day }`}

# Cursors, ledger and history. Without ${databaseVariable}: an embedded Postgres under .tributary/
state: { url: ${database} }

# Personal data, before it is written anywhere: keep | drop | hash (needs salt: \${…}), and truncate for ip.
privacy: { linkPassword: drop, ip: keep, customer: keep }

# Receives a POST when a stream is parked, later than its maxLag or not certified: a webhook of Slack, or your own. Without it: only the log.
alerts: { webhook: "\${TRIBUTARY_ALERT_WEBHOOK:-}" }
`;
}

/** Poll interval and lag target; leads and sales are read again every night, because imports backdate them. */
const streamLine = (stream: StreamName): string =>
  stream === 'clicks'
    ? '      clicks: { every: 5m, maxLag: 1h }'
    : `      ${`${stream}:`.padEnd(6)} { every: 1m, maxLag: 1h, resweep: 90d }`;

/** As a double-quoted YAML string, so that an answer can never become YAML syntax. */
const quoted = (text: string): string => JSON.stringify(text);
