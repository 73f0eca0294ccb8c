import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { certified } from '../support/certified.ts';
import { configFor, type Engine, openEngine, sourceOf, syncAllDone, withSmallPages } from '../support/engine.ts';
import { openFeed, recordOf } from '../support/feed.ts';
import { type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { idOf, smallSandbox } from '../support/sandbox.ts';
import { MINUTE, NOON } from '../support/sink-harness.ts';

/** Events that the service no longer shows are kept, and marked by the next sweep that reads their window completely. */

const schema = 'attribution';
let place: PostgresPlace;
let engine: Engine;
beforeAll(async () => {
  [place, engine] = await Promise.all([postgresPlace({ schema }), openEngine()]);
});
afterAll(async () => {
  await place.close();
  await engine.close();
});

const feed = (stream: 'clicks' | 'leads' = 'clicks') =>
  openFeed({ state: place.state, sinks: [place.createSink()], stream });

const marked = async (source: string): Promise<string[]> => {
  const text = `select event_id from ${schema}.clicks where _source = $1 and _missing_since is not null order by 1`;
  return (await place.db.query<{ event_id: string }>({ text, values: [source] })).map((row) => row.event_id);
};
const window = (from: number, to: number) => ({ start: NOON + from * MINUTE, end: NOON + to * MINUTE });
const proven = (from: number, to: number) => ({ window: window(from, to), certified: certified(window(from, to)) });
const complete = (from: number, to: number) => ({ ...proven(from, to), whole: true });
const events = (...minutes: number[]) => minutes.map((minute) => recordOf(`m${minute}`, {}, minute));

it('marks what a completely read window does not show, at its start and not at its end', async () => {
  const { send, source } = await feed();
  const other = await feed();
  await send(events(0, 5, 10, 15, 20));
  await other.send(events(5, 10));
  expect(await send(events(0, 15), complete(0, 20))).toMatchObject({ new: 0, changed: 0, unchanged: 2 });
  expect(await marked(source)).toEqual(['m10', 'm5']);
  expect(await marked(other.source)).toEqual([]);
  const [row] = await place.db.query<{ known: boolean }>({
    text: `select _missing_since > _first_synced_at as known from ${schema}.clicks where _source = $1 and event_id = 'm5'`,
    values: [source],
  });
  expect(row).toEqual({ known: true });
});

it('keeps the time at which an event was first missed', async () => {
  const { send, source } = await feed();
  const since = () =>
    place.db.query({ text: `select _missing_since::text from ${schema}.clicks where _source = $1`, values: [source] });
  await send(events(5));
  await send([], complete(0, 10));
  const first = await since();
  await send([], complete(0, 10));
  expect(await since()).toEqual(first);
});

it('marks nothing if the window was read partly, by another batch, or by the tail', async () => {
  const { send, source } = await feed();
  await send(events(0, 5, 10));
  await send(events(0), proven(0, 20));
  await send(events(0), { ...proven(0, 20), whole: false });
  await send(events(0));
  await send(events(10), complete(6, 20));
  expect(await marked(source)).toEqual([]);
});

/** Resets all progress: the next sync sweeps everything again, page by page. */
async function sweepAgain(config: Config): Promise<void> {
  await engine.db.query({ text: 'delete from tributary.windows where source = $1', values: [sourceOf(config)] });
  await withSmallPages(engine.db, config, 20);
  await syncAllDone(config);
}

it('finds deleted events in the next sweep, and unmarks those that return', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 200, leads: 60, sales: 30 }, days: 12 });
  const { service } = sandbox;
  const config = configFor(engine, sandbox);
  await withSmallPages(engine.db, config, 20);
  await syncAllDone(config);
  const missing = async (stream: string): Promise<string[]> => {
    const text = `select event_id from attribution.${stream} where _source = $1 and _missing_since is not null`;
    const rows = await engine.db.query<{ event_id: string }>({ text, values: [sourceOf(config)] });
    return rows.map((row) => row.event_id).sort();
  };
  await sweepAgain(config);
  for (const stream of ['clicks', 'leads', 'sales']) expect(await missing(stream)).toEqual([]);

  const restored = service.events('clicks')[40] ?? {};
  for (const record of service.events('clicks').slice(40, 43)) service.remove('clicks', idOf(record));
  service.deleteLink(service.links[0]?.id ?? '');
  await sweepAgain(config);
  const deleted = service.removed('clicks').sort();
  const found = await missing('clicks');
  expect(found.filter((id) => !deleted.includes(id))).toEqual([]);
  expect(found).toContain(idOf(restored));
  // All except those so young that only the tail reads them.
  expect(found.length).toBeGreaterThan(deleted.length * 0.7);
  expect((await missing('leads')).filter((id) => !service.removed('leads').includes(id))).toEqual([]);
  const [{ kept } = { kept: 0 }] = await engine.db.query<{ kept: number }>({
    text: 'select count(*) as kept from attribution.clicks where _source = $1',
    values: [sourceOf(config)],
  });
  expect(kept).toBe(200);

  service.add('clicks', restored);
  await sweepAgain(config);
  expect(await missing('clicks')).toEqual(found.filter((id) => id !== idOf(restored)));
});

it('marks deleted events behind the watermark with the next poll, as far back as its page reaches', async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 200, leads: 20, sales: 10 }, days: 12 });
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  const deleted = sandbox.service.ids('clicks').at(-2) ?? '';
  sandbox.service.remove('clicks', deleted);
  await syncAllDone(config);
  const text = 'select event_id from attribution.clicks where _source = $1 and _missing_since is not null';
  expect(await engine.db.query({ text, values: [sourceOf(config)] })).toEqual([{ event_id: deleted }]);
});
