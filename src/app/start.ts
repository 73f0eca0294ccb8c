import type { Config } from '../config/index.ts';
import { printable } from '../config/print.ts';
import { OWNER } from '../config/values.ts';
import { keyHashOf } from '../cursor/budgets.ts';
import { connect, type Database } from '../cursor/database/index.ts';
import { checkBinding } from '../http/access.ts';
import { type ControlDeps, createDependencies } from '../http/dependencies.ts';
import type { LiveTimings } from '../http/live.ts';
import { createMetrics, type Metrics } from '../http/metrics.ts';
import { serveHttp } from '../http/server.ts';
import { ownToken, type Token } from '../http/tokens.ts';
import { createFlatten } from '../model/flatten.ts';
import { STREAMS } from '../model/streams.ts';
import { groupBy } from '../sinks/files/group-by.ts';
import { isOfEvents } from '../sync/job.ts';
import { examine } from './doctor.ts';
import { ownVersion } from './environment.ts';
import { STATE_DIR } from './index.ts';
import type { Closers } from './resources.ts';
import { runWorkerApp, type WorkerApp, type WorkerAppOptions } from './worker.ts';

export interface StartOptions extends Omit<WorkerAppOptions, 'alongside' | 'onBug'> {
  /** Called with the page's URL when the server listens. */
  onListening?(url: string, room: ControlRoom): void;
  liveTimings?: LiveTimings;
  /** The folder of the generated token, if the config has none. */
  tokenFolder?: string;
}

export interface ControlRoom {
  /** Signs in: the token is after the `#`, which no server or proxy sees. Undefined if the config defines the tokens. */
  link: string | undefined;
  reload(http: Config['http']): Promise<void>;
}

export async function runStartApp({
  onListening,
  liveTimings,
  onRun,
  tokenFolder = STATE_DIR,
  ...options
}: StartOptions): Promise<void> {
  const { config, signal } = options;
  // Checked before anything is opened: an unprotected server must not be reachable for even a moment.
  checkBinding(config.http);
  let metrics: Metrics | undefined;
  await runWorkerApp({
    ...options,
    onRun(report) {
      metrics?.ran(report);
      onRun?.(report);
    },
    onBug: (where) => metrics?.broke(where),
    async alongside(app, closers) {
      const deps = controlDeps(config, app, { log: options.log, signal }, closers);
      metrics = createMetrics(deps);
      closers.push(() => metrics?.close());
      const { token: _, tokens: __, ...settings } = config.http;
      const ownIn = async (http: Config['http']) => (definesTokens(http) ? undefined : ownToken(tokenFolder));
      const own = await ownIn(config.http);
      const server = await serveHttp(deps, metrics, {
        ...settings,
        tokens: tokensIn(config.http, own),
        onlyLoopbackNames: own !== undefined,
        ...(liveTimings && { liveTimings }),
      });
      closers.push(() => server.close());
      onListening?.(server.url, {
        link: own && `${server.url}/#token=${own}`,
        async reload(http) {
          checkBinding(http);
          server.replaceTokens(tokensIn(http, await ownIn(http)));
        },
      });
    },
  });
}

const definesTokens = ({ token, tokens }: Config['http']): boolean =>
  token !== undefined || Object.keys(tokens).length > 0;

const tokensIn = ({ token: named, tokens }: Config['http'], token = named): Token[] => [
  ...(token === undefined ? [] : [{ name: OWNER, role: 'admin' as const, secret: token }]),
  ...Object.entries(tokens).map(([name, one]) => ({
    name,
    role: one.role,
    secret: one.token,
    expiresAt: one.expires,
  })),
];

/** Views use a few connections of their own, so that they do not wait for syncs. */
const CONNECTIONS = 4;

function controlDeps(
  config: Config,
  { stateUrl, queue, sinks, scheduled, narrow }: WorkerApp,
  { log, signal }: Pick<ControlDeps, 'log' | 'signal'>,
  closers: Closers,
): ControlDeps {
  const open = (url: string, max = CONNECTIONS): Database => {
    const db = connect({ url, name: 'tributary http', max });
    closers.push(() => db.close());
    return db;
  };
  const state = open(stateUrl);
  return {
    state,
    queue,
    dependencies: createDependencies({ probe: open(stateUrl, 1), queue }),
    sinks,
    streams: scheduled.flatMap(({ job, maxLagMs }) => {
      if (!isOfEvents(job)) return [];
      const { source, stream } = job;
      return [{ source, stream, job, maxLagMs, flatten: createFlatten(STREAMS[stream], config.privacy) }];
    }),
    listings: scheduled.flatMap(({ job: { source, stream }, maxLagMs }) =>
      stream === 'links' ? [{ source, stream, maxLagMs }] : [],
    ),
    keys: keysOf(config),
    warehouse: warehouseOf(config, (url) => (url === undefined || url === stateUrl ? state : open(url))),
    narrow,
    examine: (until) => examine({ config, log, signal: until, stateUrl, onFinding: () => {} }),
    config: printable(config),
    log,
    version: ownVersion(),
    signal,
  };
}

/** The first Postgres sink. */
function warehouseOf({ sinks }: Config, open: (url: string | undefined) => Database): ControlDeps['warehouse'] {
  for (const [name, sink] of Object.entries(sinks)) {
    if (sink.type === 'postgres') return { name, db: open(sink.url), schema: sink.schema };
  }
  return undefined;
}

function keysOf({ sources }: Config): ControlDeps['keys'] {
  const keys = groupBy(Object.entries(sources), ([, { apiKey }]) => keyHashOf(apiKey));
  return [...keys].map(([hash, own]) => ({ hash, sources: own.map(([name]) => name) }));
}
