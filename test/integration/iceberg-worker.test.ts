import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runWorkerApp } from '../../src/app/worker.ts';
import type { Config } from '../../src/config/index.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { statesOf, sync } from '../support/engine.ts';
import { type IcebergPlace, icebergPlace, type SeenFile } from '../support/iceberg-place.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { createWriter, MINUTE, rowOf } from '../support/sink-harness.ts';
import { FAST, until, workerConfig } from '../support/workers.ts';

/** Work of a worker on Iceberg tables other than writing rows: in its own lane, so that runs neither wait for it nor fail with it. */

let place: IcebergPlace;
let sandbox: Sandbox;
beforeAll(async () => {
  [place, sandbox] = await Promise.all([icebergPlace(), smallSandbox({ rows: { leads: 40 }, days: 2 })]);
  await place.createSink().prepare(STREAMS.leads);
});
afterAll(() => place.close());

const config = (): Config =>
  workerConfig({
    stateUrl: place.stateUrl,
    queueUrl: undefined,
    sandboxes: { main: sandbox },
    streams: ['leads'],
    rest: { sinks: { tables: { type: 'iceberg', warehouse: place.folder } } },
  });

interface Worked {
  states: string[];
  warnings: string[];
}

async function withWorker(work: (worked: Worked) => Promise<void>): Promise<void> {
  const worked: Worked = { states: [], warnings: [] };
  const log = {
    ...silentLog,
    warn: (fields: object, message: string) => void worked.warnings.push(`${message} ${JSON.stringify(fields)}`),
  };
  const stop = new AbortController();
  const worker = runWorkerApp({
    ...{ config: config(), log, signal: stop.signal, timings: { ...FAST, maintainMs: 300 } },
    onRun: ({ state }) => void worked.states.push(state),
  });
  try {
    await Promise.race([work(worked), worker.then(() => Promise.reject(new Error('the worker ended')))]);
  } finally {
    stop.abort();
    await worker;
  }
}

/** As many polls leave them: a small file each, on a past day. */
async function leaveSmallFiles(source: string, count: number): Promise<void> {
  const writer = await createWriter(place, STREAMS.leads, source);
  const noon = Math.floor(Date.now() / DAY_MS - 5) * DAY_MS + DAY_MS / 2;
  for (let i = 0; i < count; i++) await writer.commit([rowOf(STREAMS.leads, `${source}-${i}`, noon + i * MINUTE)]);
  await writer.lease.release();
}

const filesOf = async (source: string): Promise<SeenFile[]> =>
  (await place.lookAt('leads')).files.filter(({ path }) => path.includes(`/${source}-`));

describe('a sync without a worker', () => {
  it('does at its end what is due', async () => {
    await leaveSmallFiles('cron', 3);
    expect(statesOf(await sync(config()))).toEqual(['done']);
    expect((await filesOf('cron')).map(({ rows }) => rows)).toEqual([3]);
  });
});

describe('a worker', () => {
  it('joins the small files of a past day, even if they are few', async () => {
    await leaveSmallFiles('few', 3);
    await withWorker(() => until('they are joined', async () => (await filesOf('few')).length === 1));
    expect((await filesOf('few')).map(({ rows }) => rows)).toEqual([3]);
  });

  it('keeps reading when a table cannot be maintained, and says so', async () => {
    await leaveSmallFiles('torn', 12);
    const [lost] = await filesOf('torn');
    await rm(lost?.path ?? '');
    await withWorker(async ({ states, warnings }) => {
      await until('it says so', () => warnings.some((line) => line.includes(lost?.path ?? '')));
      const before = states.length;
      await until('it keeps reading', () => states.length > before + 3);
      expect(new Set(states)).toEqual(new Set(['done']));
    });
  });
});
