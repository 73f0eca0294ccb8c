import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, parseConfig } from '../../../src/config/index.ts';
import type { StreamName } from '../../../src/model/streams.ts';
import { DAY_MS } from '../../../src/model/window.ts';
import { configText, emptyEngine, withSmallPages } from '../../support/engine.ts';
import { type Sandbox, startSandbox } from '../../support/odd-service/service.ts';
import { newSource } from '../../support/sink-harness.ts';
import { type Grounds, type Site, type SiteName, siteOf } from './sites.ts';

/** What each case has for itself: a service, a source, a folder, and places in the sinks. */
export interface World {
  sandbox: Sandbox;
  source: string;
  streams: readonly StreamName[];
  openedAt: number;
  /** The start of the first sync. */
  since: number;
  dir: string;
  config: Config;
  /** The config as a file. */
  configFile: string;
  sites: readonly Site[];
  grounds: Grounds;
  /** Events that arrived after the first sync, and when: windows proven before need not hold them. */
  late: { ids: Set<string>; since: number };
  /** Deleted at the service: their rows stay. */
  vanished: Set<string>;
  /** Ids of customers to forget. */
  forgotten: Set<string>;
  /** The killed process. */
  killed: number | undefined;
  /** When the last sync began: it could prove what was ten minutes old by then. */
  syncedAt: number;
  close(): Promise<void>;
}

export interface WorldOptions {
  sites: readonly SiteName[];
  streams?: readonly StreamName[];
  /** The first sync begins so many days before now. */
  sinceDays?: number;
  /** Further settings of each stream. */
  settings?: object;
  /** Starts without a state. */
  isNew?: boolean;
  /** The queue is in Redis; otherwise in the state's database. */
  isQueueInRedis?: boolean;
}

const DAYS = 4;
/** A few pages for each stream. */
const ROWS = { clicks: 40, leads: 40, sales: 40 };
const PAGE_ROWS = 8;

export async function openWorld(shared: Grounds, options: WorldOptions): Promise<World> {
  const { sites, streams = ['leads'], sinceDays = DAYS + 1, settings = {}, isQueueInRedis, isNew } = options;
  const grounds = isNew ? { ...shared, state: await emptyEngine() } : shared;
  const source = newSource();
  const dir = await mkdtemp(join(tmpdir(), 'tributary-killed-'));
  const sandbox = await startSandbox({ requestsPerSecond: null, rows: ROWS, days: DAYS, seed: 5 });
  // Recent enough for the next sync to read again, old enough for the first to prove.
  const { now, arrive } = sandbox.service;
  for (const stream of streams) arrive(stream, 3, { from: now() - 20 * 60_000, to: now() - 12 * 60_000 });
  const places = sites.map((name) => siteOf(name, grounds, source, dir));
  const text = configText(grounds.state, sandbox, {
    name: source,
    since: `${sinceDays}d`,
    streams: Object.fromEntries(streams.map((stream) => [stream, settings])),
    queueUrl: isQueueInRedis ? grounds.redis : undefined,
    sinks: Object.fromEntries(places.map(({ name, settings }) => [name, settings])),
  });
  const { config } = parseConfig(text, 'crash.yaml', {});
  const configFile = join(dir, 'crash.yaml');
  await writeFile(configFile, text);
  if (!isNew) await withSmallPages(grounds.state.db, config, PAGE_ROWS);
  return {
    sandbox,
    source,
    streams,
    openedAt: Date.now(),
    since: Date.now() - sinceDays * DAY_MS,
    dir,
    config,
    configFile,
    sites: places,
    grounds,
    late: { ids: new Set(), since: Number.POSITIVE_INFINITY },
    vanished: new Set(),
    forgotten: new Set(),
    killed: undefined,
    syncedAt: 0,
    async close() {
      await sandbox.close();
      if (isNew) await grounds.state.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
