import { addressOf } from '../cursor/database-errors.ts';
import { isObject } from '../model/extra.ts';
import type { Config, StreamConfig } from './schema.ts';

/** The config as it is understood: every default filled in, every secret masked. It can be shown to anybody. */
export function printable(config: Config): object {
  const { sources, sinks, state, queue, alerts, privacy, http, ...rest } = config;
  return {
    sources: mapped(sources, ({ apiKey: _, streams, ...source }) => ({
      ...source,
      apiKey: MASK,
      streams: mapped(streams, (stream) => stream && printableStream(stream)),
    })),
    sinks: mapped(sinks, (sink) => withoutSecrets('url' in sink ? { ...sink, url: masked(sink.url) } : sink)),
    state: {
      url: masked(state.url) ?? 'an embedded Postgres under .tributary/',
      directUrl: masked(state.directUrl),
      retention: durationOf(state.retention),
    },
    queue: queue.url === undefined ? 'in the state database' : { url: masked(queue.url) },
    // A webhook's address is its password.
    alerts: alerts.webhook === undefined ? 'in the log' : { ...alerts, webhook: MASK },
    privacy: { ...privacy, ...(privacy.salt !== undefined && { salt: MASK }) },
    http: {
      ...http,
      ...(http.token !== undefined && { token: MASK }),
      tokens: mapped(http.tokens, (one) => ({ ...one, token: MASK })),
    },
    ...rest,
  };
}

const MASK = '***';

/** Whatever a kind of sink may come to be told: names like these hold secrets. */
const withoutSecrets = (settings: object): object =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      /secret|password|token|accessKey|credential/i.test(name) ? MASK : isObject(value) ? withoutSecrets(value) : value,
    ]),
  );

const mapped = <T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));

function printableStream({ filters, schedule, ...stream }: StreamConfig): object {
  const times = ['lookback', 'settle', 'resweep', 'maxLag'] as const;
  const said = times.flatMap((time) => (stream[time] === undefined ? [] : [[time, durationOf(stream[time])]]));
  const due = 'every' in schedule ? { every: durationOf(schedule.every) } : schedule;
  return { ...due, ...stream, ...Object.fromEntries(said), filters: filters.query };
}

/** As it would be typed: 900000 is 15m. */
function durationOf(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ] as const;
  const [unit, size] = units.find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

/** Who and where, without the password and without parameters, which may hold one too. */
function masked(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (!/^postgres/.test(url)) {
    const { protocol, host, pathname, password } = new URL(url);
    return `${protocol}//${password === '' ? '' : `${MASK}@`}${host}${pathname}`;
  }
  const { user, host, port, database } = addressOf(url);
  return `postgresql://${user}${new URL(url).password === '' ? '' : `:${MASK}`}@${host}:${port}/${database}`;
}
