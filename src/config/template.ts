import type { StreamName } from '../model/streams.ts';

/** What a person has to decide before the first sync. Everything else has a default that suits most. */
export interface Choices {
  baseUrl: string;
  plan: string;
  requestsPerSecond: string | undefined;
  /** The environment variables that hold the key and the database's URL: never those themselves. */
  keyVariable: string;
  databaseVariable: string;
  streams: readonly StreamName[];
  since: string;
  lake: string | undefined;
}

/** A config for a person to go on with: every line says what it is for. */
export function configTemplate(choices: Choices): string {
  const { baseUrl, plan, requestsPerSecond, keyVariable, databaseVariable, streams, since, lake } = choices;
  const database = `"\${${databaseVariable}:-}"`;
  return `# yaml-language-server: $schema=./tributary.schema.json
#
# Tributary's config, made by tributary init. \${NAME} reads the environment, \${NAME:-default} falls back.
# tributary config check names every fault; tributary doctor looks at everything behind it.

sources:
  main:
    # Where the service answers.
    baseUrl: ${quoted(baseUrl)}
    # The key stays in the environment. Never write it here.
    apiKey: \${${keyVariable}}
    # pro 2/s · business 4/s · advanced 8/s · enterprise needs requestsPerSecond
    # The contract asks for the Business tier or higher: on pro the service may answer 403.
    plan: ${plan}
${requestsPerSecond === undefined ? '    # requestsPerSecond: 2          # less than the plan grants, if other programs use the key too' : `    requestsPerSecond: ${requestsPerSecond}`}
    # Where the first sync begins: a date, a duration back from then, or all. It may move back later.
    since: ${quoted(since)}
    # A stream that is left out is not synced. One that is further behind than maxLag raises an alert.
    streams:
${streams.map(streamLine).join('\n')}

sinks:
  # Tables in Postgres. Without ${databaseVariable} they live in the state database.
  warehouse: { type: postgres, url: ${database}, schema: attribution }
${lake === undefined ? '  # Parquet files, one a day and source:\n  # lake: { type: parquet, path: ./data/lake, partition: day }' : `  # Parquet files, one a day and source.\n  lake: { type: parquet, path: ${quoted(lake)}, partition: day }`}

# Cursors, ledger and history. Without ${databaseVariable}: an embedded Postgres under .tributary/
state: { url: ${database} }

# Personal data, before it is written anywhere: keep | drop | hash (needs salt: \${…}), and truncate for ip.
privacy: { linkPassword: drop, ip: keep, customer: keep }
`;
}

/** How often the worker looks, and when it calls a stream late; leads and sales are read again every night, because imports backdate them. */
const streamLine = (stream: StreamName): string =>
  stream === 'clicks'
    ? '      clicks: { every: 5m, maxLag: 1h }'
    : `      ${`${stream}:`.padEnd(6)} { every: 1m, maxLag: 1h, resweep: 90d }`;

/** As a double-quoted YAML text: what was typed can never become YAML of its own. */
const quoted = (text: string): string => JSON.stringify(text);
