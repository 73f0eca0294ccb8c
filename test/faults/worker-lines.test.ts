import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withQueue } from '../../src/app/worker.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../src/model/streams.ts';
import { freshPlace } from '../support/cli.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { type FaultProxy, LINE_FAULTS, startFaultProxy } from '../support/fault-proxy.ts';
import { download } from '../support/lake-place.ts';
import { readWithDuckdb } from '../support/lake-readers.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { recordCase } from '../support/proof.ts';
import { hasRedis, startRedis } from '../support/redis.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { FAST, startWorker, type TestWorker, until, workerConfig } from '../support/workers.ts';
import { idsIn, type Losses, lossesOf } from './losses.ts';
import { isProving, KEY, SHORT_TIMEOUTS } from './wire-scene.ts';

/**
 * One worker, and every fault of the connection to one of its servers in turn. It recovers when the connection does:
 * events that arrived meanwhile are stored once.
 */

const PEERS = ['service', 'state', 'warehouse', 'redis', 's3'] as const;
type Peer = (typeof PEERS)[number];

/** Without TRIBUTARY_PROVE: the two faults that no other test has, at the server that only a worker has. */
const CROSS_SECTION: Partial<Record<Peer, string[]>> = { redis: ['half-open', 'reset'] };
const faultsFor = (peer: Peer): string[] => (isProving ? Object.keys(LINE_FAULTS) : (CROSS_SECTION[peer] ?? []));

/** How long the connection stays broken, and the most attempts a second: three streams, their queue and its watch. */
const BROKEN_MS = 4000;
const MOST_A_SECOND = 60;

interface Scene {
  proxy: FaultProxy;
  sandbox: Sandbox;
  worker: TestWorker;
  idsOf(stream: StreamName): Promise<string[]>;
  close(): Promise<void>;
}

async function openScene(peer: Peer, s3: S3Server | undefined): Promise<Scene> {
  const [state, warehouse, sandbox] = await Promise.all([
    openEngine(),
    openEngine(),
    smallSandbox({ apiKey: KEY, rows: { clicks: 60, leads: 20, sales: 10 }, days: 5 }),
  ]);
  const redis = peer === 'redis' ? await startRedis() : undefined;
  const real: Record<Peer, string> = {
    service: sandbox.baseUrl,
    state: state.url,
    warehouse: warehouse.url,
    redis: redis?.url ?? '',
    s3: s3?.url ?? '',
  };
  const proxy = await startFaultProxy(real[peer]);
  const urls = { ...real, [peer]: proxy.url };
  const folder = await mkdtemp(join(tmpdir(), 'tributary-wire-'));
  const prefix = `wire/${Math.random().toString(36).slice(2)}`;
  const sinks =
    peer === 's3'
      ? { lake: { type: 'parquet', path: `s3://${s3?.bucket}/${prefix}` } }
      : { warehouse: { type: 'postgres', url: urls.warehouse } };
  const config = workerConfig({
    stateUrl: urls.state,
    queueUrl: redis && urls.redis,
    sandboxes: { main: { baseUrl: urls.service, apiKey: sandbox.apiKey } },
    rest: { sinks },
  });
  // Creates the queue's tables before the connection can break, without short timeouts.
  await withQueue(
    { config: { ...config, state: { ...config.state, url: state.url } }, log: silentLog },
    async () => {},
  );
  const worker = startWorker(config, FAST, {
    ...s3?.environment,
    ...(s3 && { AWS_ENDPOINT_URL_S3: urls.s3 }),
    ...SHORT_TIMEOUTS,
  });
  await worker.ready();
  return {
    proxy,
    sandbox,
    worker,
    async idsOf(stream) {
      if (peer !== 's3' || !s3) return idsIn(warehouse.db)(stream);
      await rm(join(folder, stream), { recursive: true, force: true });
      await download(s3, `${prefix}/${stream}/`, join(folder, stream));
      return (await readWithDuckdb(folder, STREAMS[stream])).map((row) => String(row.event_id));
    },
    async close() {
      await proxy.close();
      for (const engine of [state, warehouse] satisfies Engine[]) await engine.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const lossesIn = ({ sandbox, idsOf }: Scene): Promise<Losses> => lossesOf(sandbox, idsOf);

const arrive = ({ sandbox: { service } }: Scene): void => {
  for (const stream of STREAM_NAMES) service.arrive(stream, 3, { from: service.now() - 60_000, to: service.now() });
};
const isComplete = async (scene: Scene): Promise<boolean> => (await lossesIn(scene)).lost === 0;

describe.skipIf(!hasRedis).each(PEERS.filter((peer) => faultsFor(peer).length > 0))('the line to %s', (peer) => {
  let scene: Scene;
  let s3: S3Server | undefined;
  beforeAll(async () => {
    s3 = peer === 's3' ? await startS3() : undefined;
    Object.assign(process.env, s3?.environment);
    scene = await openScene(peer, s3);
    await until('everything is there', () => isComplete(scene));
  });
  afterAll(async () => {
    await scene.close();
    await s3?.close();
  });

  it.each(faultsFor(peer))('%s: the worker recovers when the connection does', { timeout: 150_000 }, async (name) => {
    const fault = LINE_FAULTS[name];
    if (!fault) throw new Error(`no fault ${name}`);
    await scene.proxy.fail(fault);
    arrive(scene);
    const began = Date.now();
    await sleep(BROKEN_MS);
    // It does not wait on the dead connection for ever, but tries another.
    if (name === 'half-open' || name === 'reset')
      await until('another line is tried', () => scene.proxy.attempts() > 0);
    const [attempts, seconds] = [scene.proxy.attempts(), (Date.now() - began) / 1000];
    await scene.proxy.heal();
    arrive(scene);
    const recovered = await until('what arrived is there', () => isComplete(scene), 100_000).then(
      () => true,
      () => false,
    );
    const sums = await lossesIn(scene);
    recordCase({ suite: 'wire', name: `worker, ${name}: ${peer}`, survived: recovered, ...sums });
    expect({ recovered, ...sums }).toEqual({ recovered: true, lost: 0, doubled: 0 });
    expect(attempts).toBeLessThanOrEqual(MOST_A_SECOND * seconds);
  });

  it('lets the worker leave on SIGTERM while it is down, with nothing but warnings in its log', async () => {
    await scene.proxy.fail({ kind: 'refuse' });
    await sleep(BROKEN_MS);
    scene.worker.child.kill('SIGTERM');
    const { code, text } = await scene.worker.done;
    expect([code, text.match(/.*a bug.*/)?.[0]]).toEqual([0, undefined]);
    expect(text).not.toContain(KEY);
  });
});

it.runIf(isProving && hasRedis)('a worker that cannot reach its queue at startup reports it and exits', async () => {
  const [engine, redis, place] = await Promise.all([openEngine(), startRedis(), freshPlace()]);
  const source = { baseUrl: 'http://127.0.0.1:1', apiKey: KEY, plan: 'business' };
  const line = await startFaultProxy(redis.url);
  await place.config(
    JSON.stringify({ sources: { main: source }, state: { url: engine.url }, queue: { url: line.url } }),
  );
  for (const [kind, says] of [
    ['refuse', 'ECONNREFUSED'],
    ['half-open', 'Socket timeout'],
  ] as const) {
    await line.fail({ kind });
    const { code, stderr } = await place.run(['worker', '--config', 't.yaml'], SHORT_TIMEOUTS);
    await line.heal();
    recordCase({ suite: 'wire', name: `at the start, ${kind}: redis`, survived: code === 4, lost: 0, doubled: 0 });
    expect(stderr).toMatch(new RegExp(`Redis at .* cannot be reached \\(${says}.*\\)\nnext: start it`));
    expect(code).toBe(4);
  }
  await line.close();
  await engine.close();
});
