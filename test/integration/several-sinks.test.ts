import { expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { readCursor } from '../../src/cursor/cursors.ts';
import { emptyTally, listRuns } from '../../src/cursor/runs.ts';
import { configFor, openEngine, sourceOf, statesOf, storedIds, sync } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';

const engine = await forThisFile(openEngine());

const clicks = { streams: ['clicks'] } as const;
const FIRST = { first: { type: 'postgres', schema: 'first_sink' } };
const BOTH = { ...FIRST, second: { type: 'postgres', schema: 'second_sink' } };
const throughOf = async (config: Config, sink: string): Promise<number> =>
  (await readCursor(engine.db, { source: sourceOf(config), stream: 'clicks', sink }))?.completeThrough ?? 0;
const written = (schema: string, config: Config) =>
  engine.db.query({
    text: `select event_id, xmin::text from ${schema}.clicks where _source = $1 order by 1`,
    values: [sourceOf(config)],
  });

it('one reading feeds all sinks', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 2500, leads: 1, sales: 1 } });
  const one = configFor(engine, sandbox, { sinks: FIRST });
  const [alone] = await sync(one, clicks);
  const two = configFor(engine, sandbox, { sinks: BOTH });
  const [together] = await sync(two, clicks);
  expect(together?.report?.tally.requests).toBe(alone?.report?.tally.requests);
  const ids = [...sandbox.service.ids('clicks')].sort();
  expect(await storedIds(engine.db, two, 'clicks', 'first_sink')).toEqual(ids);
  expect(await storedIds(engine.db, two, 'clicks', 'second_sink')).toEqual(ids);
});

it('a sink that is added later catches up, and the other is not written to', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 3500, leads: 1, sales: 1 } });
  const name = 'catching-up';
  const one = configFor(engine, sandbox, { name, sinks: FIRST });
  await sync(one, clicks);
  const before = await written('first_sink', one);
  const two = configFor(engine, sandbox, { name, sinks: BOTH });
  const outcomes = await sync(two, clicks);
  expect(statesOf(outcomes)).toEqual(['done']);
  expect(await storedIds(engine.db, two, 'clicks', 'second_sink')).toEqual([...sandbox.service.ids('clicks')].sort());
  expect(await written('first_sink', two)).toEqual(before);
  expect(await throughOf(two, 'second')).toBeGreaterThan(Date.now() - 12 * 60_000);
  const { sinks, ...total } = outcomes[0]?.report?.tally ?? emptyTally();
  expect(total).toMatchObject({ new: 3500 });
  expect(sinks).toMatchObject({ first: { new: 0 }, second: { new: 3500 } });
  // What only the new one lacked was not sent to the other.
  expect(sinks.first?.unchanged).toBeLessThan(2500);
  const [run] = await listRuns(engine.db, { source: name, limit: 1 });
  expect(run).toMatchObject({ new: 3500, sinks });
  const [idle] = await sync(two, clicks);
  expect(idle?.report?.tally.requests).toBe(1);
  expect((await listRuns(engine.db, { source: name, limit: 1 }))[0]?.sinks).toBeNull();
});

it('a failing sink falls behind alone, is reported, and catches up', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 900, leads: 1, sales: 1 } });
  const name = 'half-broken';
  const both = configFor(engine, sandbox, { name, sinks: BOTH });
  // A table of another owner is in the way.
  await engine.db.query({ text: 'alter schema second_sink rename to second_aside' });
  await engine.db.query({ text: 'create schema second_sink create table clicks (_source text, event_id bytea)' });
  const [outcome] = await sync(both, clicks);
  expect(outcome?.fault?.describe()).toMatch(
    /^half-broken\/clicks.* in second: table clicks has columns of another type/,
  );
  expect(await storedIds(engine.db, both, 'clicks', 'first_sink')).toHaveLength(900);
  expect(await throughOf(both, 'first')).toBeGreaterThan(0);
  expect(await throughOf(both, 'second')).toBe(0);
  await engine.db.query({ text: 'drop schema second_sink cascade' });
  await engine.db.query({ text: 'alter schema second_aside rename to second_sink' });
  expect(statesOf(await sync(both, clicks))).toEqual(['done']);
  expect(await storedIds(engine.db, both, 'clicks', 'second_sink')).toHaveLength(900);
});

it('changed filters restart the certification: newly matching events are read, of any age', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 3500, leads: 1, sales: 1 } });
  const name = 'filtered';
  const countries = (list: string[]) =>
    configFor(engine, sandbox, { name, sinks: FIRST, streams: { clicks: { filters: { country: list } } } });
  const all = configFor(engine, sandbox, { name, sinks: FIRST });
  await sync(countries(['US']), clicks);
  const some = await storedIds(engine.db, all, 'clicks', 'first_sink');
  await sync(countries(['US', 'DE']), clicks);
  const more = await storedIds(engine.db, all, 'clicks', 'first_sink');
  expect(some.length).toBeGreaterThan(0);
  expect(more.length).toBeGreaterThan(some.length);
  await sync(all, clicks);
  expect(await storedIds(engine.db, all, 'clicks', 'first_sink')).toEqual([...sandbox.service.ids('clicks')].sort());
  const [idle] = await sync(all, clicks);
  expect(idle?.report?.tally.requests).toBe(1);
});
