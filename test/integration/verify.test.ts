import { expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { DAY_MS, MINUTE_MS } from '../../src/model/window.ts';
import { type Abilities, abilityOf } from '../../src/sinks/sink.ts';
import { isClean } from '../../src/sync/maintain/comparison.ts';
import { verifyStream } from '../../src/sync/maintain/verify.ts';
import { repairStream, verifyJob } from '../../src/sync/maintain/verify-job.ts';
import { configFor, missingIn, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { rows } from '../support/sandbox.ts';
import { counts, lately, TODAY, tenDays, verify, withJob } from '../support/verifying.ts';
import { isDeep } from '../tiers.ts';

const engine = await forThisFile(openEngine());

const change = (config: Config, text: string) => engine.db.query({ text, values: [sourceOf(config)] });

it('finds no difference after a sync, although every joined field has changed', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const { service } = sandbox;
  service.touchCounters();
  for (const link of service.links) service.renameLink(link.id, { domain: 'renamed.test' });
  for (const [stream, events] of [
    ['clicks', 1300],
    ['leads', 200],
    ['sales', 100],
  ] as const) {
    const result = await verify(config, stream);
    expect(counts(result)).toEqual({ events, missing: 0, extra: 0, different: 0 });
    expect([isClean(result), result.doubts]).toEqual([true, []]);
    // Each day of the window, except time too young to compare, which may be all of today.
    const { start, end } = result.window;
    expect(result.sinks[0]?.days).toHaveLength(Math.ceil((end - start) / DAY_MS));
    expect(result.sinks[0]?.days.length).toBeGreaterThanOrEqual(11);
  }
});

it('leaves no doubt about the end of a stream without recent events', async () => {
  const sandbox = await tenDays();
  for (const click of await rows(sandbox, { event: 'clicks', sortOrder: 'desc' })) {
    if (Date.parse(String(click.timestamp)) > Date.now() - 40 * MINUTE_MS)
      sandbox.service.remove('clicks', String(click.eventId));
  }
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const window = { start: Date.now() - 5 * DAY_MS, end: Date.now() };
  const result = await withJob(config, 'clicks', (deps, job) => verifyStream(deps, job, window));
  expect([isClean(result), result.doubts]).toEqual([true, []]);
});

it('reports missing, extra and different events by day and field; a repair fixes and certifies them', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const [lost, changed] = (await change(
    config,
    `select event_id as id, extract(epoch from date_trunc('day', "timestamp" at time zone 'UTC'))::float8 * 1000 as day
     from attribution.clicks where _source = $1 order by "timestamp" offset 600 limit 2`,
  )) as [{ id: string; day: number }, { id: string; day: number }];
  await change(config, `delete from attribution.clicks where _source = $1 and event_id = '${lost.id}'`);
  await change(
    config,
    `update attribution.clicks set click_country = 'XX', link_clicks = 1 where _source = $1 and event_id = '${changed.id}'`,
  );
  await change(
    config,
    `insert into attribution.clicks (_source, event_id, event, "timestamp", _run_id)
     select $1, 'invented', 'click', '${new Date(lost.day + 1000).toISOString()}', 'nobody'`,
  );
  const result = await verify(config);
  expect(counts(result)).toEqual({ events: 1300, missing: 1, extra: 1, different: 1 });
  const day = result.sinks[0]?.days.find((each) => each.day === lost.day);
  expect(day).toMatchObject({ missing: 1, extra: 1 });
  const examples = [...(result.sinks[0]?.examples ?? [])].sort((a, b) => (a.kind < b.kind ? -1 : 1));
  expect(examples).toMatchObject([
    { kind: 'different', id: changed.id, columns: ['click_country'] },
    { kind: 'extra', id: 'invented' },
    { kind: 'missing', id: lost.id },
  ]);

  const { after, fault } = await withJob(config, 'clicks', (deps, job) => repairStream(deps, job, result));
  expect(fault).toBeUndefined();
  expect(after && counts(after)).toEqual({ events: 1300, missing: 0, extra: 0, different: 0 });
  // None of our runs wrote it: it is removed, not marked as deleted.
  expect(await missingIn(engine.db, config)).toBe(0);
});

it.runIf(isDeep)('revokes a wrong certification, and the next sync reads the time again', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  await syncAllDone(config);
  const at = new Date(TODAY - 5 * DAY_MS).toISOString();
  const promised = async (): Promise<unknown> =>
    (
      await change(
        config,
        `select (select complete_through > '${at}' from attribution.coverage where source = $1 and stream = 'clicks') as through,
           exists (select from attribution.complete_days where source = $1 and stream = 'clicks' and date = '${at.slice(0, 10)}') as day,
           exists (select from attribution.complete_days where source = $1 and stream = 'clicks' and date = date '${at.slice(0, 10)}' - 1) as before`,
      )
    )[0];
  const compared = () => withJob(config, 'clicks', (deps, job) => verifyJob(deps, job, lately(), {}));
  const held = { through: true, day: true, before: true };
  expect([isClean((await compared()).before), await promised()]).toEqual([true, held]);
  // Changed, not deleted: no count would show it.
  await change(
    config,
    `update attribution.clicks set click_country = 'XX' where _source = $1 and "timestamp" >= '${at}' and "timestamp" < timestamptz '${at}' + interval '1 day'`,
  );
  const { before, fault } = await compared();
  expect([fault, isClean(before)]).toEqual([undefined, false]);
  expect(await promised()).toEqual({ through: false, day: false, before: true });
  await syncAllDone(config);
  expect([isClean((await compared()).before), await promised()]).toEqual([true, held]);
});

it('rows of another stream from an earlier version that did not check: found, and removed by a repair', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const columns = '_source, event_id, event, "timestamp", _run_id';
  await change(
    config,
    `insert into attribution.sales (${columns})
     select _source, event_id, event, "timestamp", _run_id from attribution.leads where _source = $1 order by event_id limit 30`,
  );
  const inSales = async (): Promise<unknown> =>
    change(
      config,
      `select event, count(*)::int as rows from attribution.sales where _source = $1 group by 1 order by 1`,
    );
  const { before, after, fault } = await withJob(config, 'sales', (deps, job) =>
    verifyJob(deps, job, lately(), { repair: true }),
  );
  expect(before.sinks[0]?.foreign[0]?.what).toMatch(/rows? of another stream \(leads, _run_id/);
  expect(isClean(before)).toBe(false);
  expect([fault, after && isClean(after)]).toEqual([undefined, true]);
  expect(await inSales()).toEqual([{ event: 'sale', rows: 100 }]);
});

it('an event deleted at the service is extra until it is marked; a forgotten one is not missing', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const [first, second] = sandbox.service.ids('clicks').slice(500);
  sandbox.service.remove('clicks', first ?? '');
  expect(counts(await verify(config))).toMatchObject({ extra: 1, missing: 0 });
  await change(
    config,
    `update attribution.clicks set _missing_since = now() where _source = $1 and event_id = '${first}'`,
  );
  expect(isClean(await verify(config))).toBe(true);
  const { forget } = await import('../../src/sync/maintain/forget.ts');
  await withJob(config, 'clicks', ({ state, sinks, holder }) =>
    forget({ state, sinks, holder }, { source: sourceOf(config), kind: 'click', id: second ?? '' }),
  );
  expect(isClean(await verify(config))).toBe(true);
});

it('the progress of a repair never goes back, from the first comparison to the last', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  for (const days of [2, 7]) {
    const at = new Date(TODAY - days * DAY_MS).toISOString();
    await change(
      config,
      `delete from attribution.clicks where _source = $1 and event_id in (
         select event_id from attribution.clicks where _source = $1 and "timestamp" >= '${at}' limit 3)`,
    );
  }
  const shares: number[] = [];
  const rows: number[] = [];
  const { after } = await withJob(config, 'clicks', (deps, job) => {
    const onProgress: typeof deps.onProgress = (progress) => {
      if (progress.done !== undefined) shares.push(progress.done);
      rows.push(progress.rows);
    };
    return verifyJob({ ...deps, onProgress }, job, lately(), { repair: true });
  });
  expect(after && isClean(after)).toBe(true);
  expect(shares.filter((share) => share > 0).length).toBeGreaterThan(2);
  expect(rows).toEqual([...rows].sort((a, b) => a - b));
  expect(shares.at(-1)).toBeCloseTo(1);
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(new Set(shares).size).toBeGreaterThan(2);
});

it('reports time that a sink was never meant to hold', async () => {
  const sandbox = await tenDays();
  const since = TODAY - 4 * DAY_MS;
  const config = configFor(engine, sandbox, { since: new Date(since).toISOString().slice(0, 10) });
  await syncAllDone(config);
  const result = await verify(config);
  expect(counts(result)?.missing).toBeGreaterThan(100);
  expect(result.sinks[0]?.neverRead[0]).toEqual({ start: TODAY - 11 * DAY_MS, end: since });
});

it('a difference only at the first comparison is none: an event arrived in between', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const [late] = sandbox.service.ids('clicks').slice(700);
  await change(
    config,
    `update attribution.clicks set _missing_since = now() where _source = $1 and event_id = '${late}'`,
  );
  let looks = 0;
  const result = await withJob(config, 'clicks', (deps, job) => {
    const [sink] = deps.sinks;
    if (!sink) throw new Error('a sink');
    const compare: Abilities['compare'] = async (question) => {
      const differences = await abilityOf(sink, 'compare')(question);
      looks += 1;
      if (differences.length > 0)
        await change(
          config,
          `update attribution.clicks set _missing_since = null where _source = $1 and event_id = '${late}'`,
        );
      return differences;
    };
    return verifyStream({ ...deps, sinks: [{ ...sink, compare }] }, job, lately());
  });
  expect(looks).toBeGreaterThan(1);
  expect(isClean(result)).toBe(true);
});
