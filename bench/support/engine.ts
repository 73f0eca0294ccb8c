import { withSyncApp } from '../../src/app/index.ts';
import { type Config, parseConfig } from '../../src/config/index.ts';
import { holderOf } from '../../src/cursor/database/holders.ts';
import { type Instant, toIso } from '../../src/model/instant.ts';
import { syncAll } from '../../src/sync/sync-stream.ts';
import { silentLog } from '../../test/support/silent-log.ts';
import { timed } from './measure.ts';

export interface Place {
  /** The state's database. */
  url: string;
  baseUrl: string;
  since: Instant;
  source: string;
  sinks: Record<string, object>;
}

/** The maximum: the bench has no limit. */
const UNLIMITED = 1000;

/** A config as a user would write it. */
export const configText = ({ url, baseUrl, since, source, sinks }: Place): string =>
  JSON.stringify({
    sources: {
      [source]: {
        ...{ baseUrl, apiKey: 'sandbox-key', plan: 'enterprise', requestsPerSecond: UNLIMITED, since: toIso(since) },
        streams: { clicks: { every: '5m' } },
      },
    },
    sinks,
    state: { url },
  });

export const configOf = (place: Place): Config => parseConfig(configText(place), 'bench.yaml', {}).config;

export interface Synced {
  seconds: number;
  rows: number;
  requests: number;
}

/** Runs `tributary sync clicks`, from the first request to the last commit. Any result but a certified end is an error. */
export function sync(config: Config): Promise<Synced> {
  return withSyncApp({ config, log: silentLog }, async ({ state, sinks, jobs }) => {
    const { signal } = new AbortController();
    const deps = { state, sinks, log: silentLog, signal, holder: holderOf('bench'), onProgress: () => {} };
    let synced = { rows: 0, requests: 0 };
    const seconds = await timed(async () => {
      const [outcome] = await syncAll(deps, jobs);
      if (outcome?.report?.state !== 'done')
        throw outcome?.fault ?? new Error('the sync of the bench was not certified');
      synced = { rows: outcome.report.tally.new, requests: outcome.report.tally.requests };
    });
    return { seconds, ...synced };
  });
}
