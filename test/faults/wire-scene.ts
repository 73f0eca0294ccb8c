import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseConfig } from '../../src/config/index.ts';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';
import { freshPlace } from '../support/cli.ts';
import { type Engine, openEngine, withSmallPages } from '../support/engine.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { download } from '../support/lake-place.ts';
import { readWithDuckdb } from '../support/lake-readers.ts';
import type { S3Server } from '../support/s3-server.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { idsIn, lossesOf } from './losses.ts';

/** The peers of a sync. Each is real, behind a proxy that can break its connections. */
export const PEERS = ['service', 'state', 'warehouse', 's3'] as const;
export type Peer = (typeof PEERS)[number];

export const KEY = 'canary-key-4711';

/** All cases, which takes minutes; otherwise a cross-section. */
export const isProving = process.env.TRIBUTARY_PROVE === '1';

/** The final message of a command, without JSON log lines, progress and retries. */
export const messageOf = (stderr: string): string =>
  stderr
    .split('\n')
    .filter((line) => !/^\{|^rows: |: attempt \d+( in .*)?, trying again/.test(line))
    .join('\n');

/** Processes under test wait a sixtieth of the time. */
export const SHORT_TIMEOUTS = { NODE_OPTIONS: `--import ${pathToFileURL('test/faults/short-timeouts.mjs').href}` };

/** Pages and answers are small, so that every fault falls into the middle of a run. */
const ROWS = { clicks: 400, leads: 60, sales: 30 };
const PAGE = 25;

/** A sync of everything by the command line, with one peer behind the proxy. */
export async function openWireScene(peer: Peer, s3: S3Server) {
  const [state, sandbox, place] = await Promise.all([
    openEngine(),
    smallSandbox({ apiKey: KEY, rows: ROWS, days: 12 }),
    freshPlace(),
  ]);
  const warehouse = peer === 'warehouse' ? await openEngine() : state;
  const folder = await mkdtemp(join(tmpdir(), 'tributary-wire-'));
  const prefix = `wire/${Math.random().toString(36).slice(2)}`;
  const real = { service: sandbox.baseUrl, state: state.url, warehouse: warehouse.url, s3: s3.url };
  const proxy = await startFaultProxy(real[peer]);
  const urls = { ...real, [peer]: proxy.url };
  const sink =
    peer === 's3'
      ? { lake: { type: 'parquet', path: `s3://${s3.bucket}/${prefix}` } }
      : { warehouse: { type: 'postgres', ...(peer === 'warehouse' && { url: urls.warehouse }) } };
  const text = JSON.stringify({
    sources: {
      main: { baseUrl: urls.service, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500, since: '30d' },
    },
    sinks: sink,
    state: { url: urls.state },
  });
  await place.config(text);
  await withSmallPages(state.db, parseConfig(text, 't.yaml', {}).config, PAGE);

  const idsOf = async (stream: StreamName): Promise<string[]> => {
    if (peer !== 's3') return idsIn(warehouse.db)(stream);
    await rm(join(folder, stream), { recursive: true, force: true });
    await download(s3, `${prefix}/${stream}/`, join(folder, stream));
    return (await readWithDuckdb(folder, STREAMS[stream])).map((row) => String(row.event_id));
  };
  const opened: Engine[] = [...new Set([state, warehouse])];
  return {
    proxy,
    sandbox,
    /** Runs `tributary sync`, with short timeouts on request. */
    sync: ({ hasShortTimeouts } = { hasShortTimeouts: false }) =>
      place.run(['sync', '--config', 't.yaml'], {
        ...s3.environment,
        AWS_ENDPOINT_URL_S3: urls.s3,
        TRIBUTARY_LOG: 'debug',
        ...(hasShortTimeouts && SHORT_TIMEOUTS),
      }),
    compare: () => lossesOf(sandbox, idsOf),
    async close() {
      await proxy.close();
      for (const engine of opened) await engine.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
