import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { abilityOf } from '../../src/sinks/sink.ts';
import { isClean, totalOf } from '../../src/sync/maintain/comparison.ts';
import { verifyBetween } from '../../src/sync/maintain/verify.ts';
import { repairStream } from '../../src/sync/maintain/verify-job.ts';
import { configFor, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { counts, lately, TODAY, tenDays, verify, withJob } from '../support/verifying.ts';

const engine = await forThisFile(openEngine());

const change = (config: Config, text: string) => engine.db.query({ text, values: [sourceOf(config)] });

const places: string[] = [];
afterAll(() => Promise.all(places.map((path) => rm(path, { recursive: true, force: true }))));

describe('a lake with a warehouse', () => {
  /** Both filled by one sync. */
  async function filled(): Promise<{ config: Config; sandbox: Sandbox }> {
    const path = await mkdtemp(join(tmpdir(), 'tributary-verify-'));
    places.push(path);
    const sandbox = await tenDays();
    const sinks = { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path } };
    const config = configFor(engine, sandbox, { sinks });
    await syncAllDone(config);
    return { config, sandbox };
  }
  const between = (config: Config, from: string, to: string) =>
    withJob(config, 'clicks', (deps, job) => {
      const [first, second] = [from, to].map((name) => deps.sinks.find((sink) => sink.name === name));
      if (!first || !second) throw new Error('two sinks');
      return verifyBetween(deps, job, lately(), [first, second]);
    });

  it('holds the same events, compared with the service and with each other', async () => {
    const { config, sandbox } = await filled();
    const result = await verify(config);
    expect(result.sinks.map(totalOf)).toEqual([
      { events: 1300, missing: 0, extra: 0, different: 0 },
      { events: 1300, missing: 0, extra: 0, different: 0 },
    ]);
    const asked = sandbox.service.stats().requests;
    for (const [from, to] of [
      ['warehouse', 'lake'],
      ['lake', 'warehouse'],
    ] as const) {
      expect(counts(await between(config, from, to))).toEqual({ events: 1300, missing: 0, extra: 0, different: 0 });
    }
    // With each other: no request to the service.
    expect(sandbox.service.stats().requests).toBe(asked);
  });

  it('reports missing, extra and different events; a repair fixes the sink that differs', async () => {
    const { config, sandbox } = await filled();
    const [lost, changed, gone = ''] = sandbox.service.ids('clicks').slice(700);
    await change(config, `delete from attribution.clicks where _source = $1 and event_id = '${lost}'`);
    await change(
      config,
      `update attribution.clicks set click_city = 'X' where _source = $1 and event_id = '${changed}'`,
    );
    const ofLake = await between(config, 'warehouse', 'lake');
    expect(counts(ofLake)).toEqual({ events: 1299, missing: 0, extra: 1, different: 1 });
    // A lake names differences like the tables.
    const different = ofLake.sinks[0]?.examples.filter(({ kind }) => kind === 'different');
    expect(different).toMatchObject([{ id: changed, columns: ['click_city'] }]);
    expect(counts(await between(config, 'lake', 'warehouse'))).toEqual({
      events: 1300,
      missing: 1,
      extra: 0,
      different: 1,
    });
    sandbox.service.remove('clicks', gone);
    const result = await verify(config);
    expect(result.sinks.map(totalOf)).toEqual([
      { events: 1299, missing: 1, extra: 1, different: 1 },
      { events: 1299, missing: 0, extra: 1, different: 0 },
    ]);
    const { after } = await withJob(config, 'clicks', (deps, job) => repairStream(deps, job, result));
    expect(after && isClean(after)).toBe(true);
    expect(isClean(await between(config, 'warehouse', 'lake'))).toBe(true);
  });
});

describe('an event that moves to another day after its stream is no longer re-read', () => {
  it('is found by verify in a lake and in Iceberg tables, and stored once after a repair', async () => {
    const path = await mkdtemp(join(tmpdir(), 'tributary-verify-'));
    places.push(path);
    const sandbox = await tenDays();
    const sinks = {
      warehouse: { type: 'postgres' },
      lake: { type: 'parquet', path: join(path, 'lake') },
      tables: { type: 'iceberg', warehouse: join(path, 'tables'), namespace: 'moved' },
    };
    const config = configFor(engine, sandbox, { sinks });
    await syncAllDone(config);
    const { service } = sandbox;
    const old = service.truth('clicks').find(({ at }) => at >= TODAY - 9 * DAY_MS && at < TODAY - 8 * DAY_MS);
    const record = service.events('clicks').find(({ click }) => (click as { id: string }).id === old?.id);
    if (!old || !record) throw new Error('an event of nine days ago');
    service.remove('clicks', old.id);
    service.add('clicks', { ...record, timestamp: new Date(old.at + 2 * DAY_MS).toISOString() });
    const before = await verify(config);
    expect(before.sinks.map(totalOf)).toEqual([
      { events: 1300, missing: 0, extra: 0, different: 1 },
      { events: 1300, missing: 1, extra: 1, different: 0 },
      { events: 1300, missing: 1, extra: 1, different: 0 },
    ]);
    const { after } = await withJob(config, 'clicks', (deps, job) => repairStream(deps, job, before));
    expect(after && isClean(after)).toBe(true);
    const attested = await withJob(config, 'clicks', ({ sinks: all }) =>
      Promise.all(all.map((sink) => abilityOf(sink, 'attest')(STREAMS.clicks, sourceOf(config), [lately()]))),
    );
    expect(attested.map(([held]) => held?.rows)).toEqual([1300, 1300, 1300]);
  });
});
