import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { forget } from '../../src/sync/maintain/forget.ts';
import { configFor, type Engine, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { openFeed, recordOf } from '../support/feed.ts';
import { type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** FIELD-NOTES 26: values are stored unchanged if Postgres can hold them, else sanitized and flagged. */

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

const feed = () => openFeed({ state: place.state, sinks: [place.createSink()], stream: 'leads' });
const rowsOf = (source: string) =>
  place.db.query<Record<string, unknown>>({
    text: `select event_id, event_name, metadata::text as metadata, dirt, link_title, _extra from ${schema}.leads
      where _source = $1 order by event_id`,
    values: [source],
  });

it('sanitizes what Postgres cannot hold, and names the columns', async () => {
  const { send, source } = await feed();
  const bad = 'a\0b\ud800c';
  const tally = await send([
    recordOf('1', { eventName: bad, metadata: { [bad]: [bad] }, dirt: bad }),
    recordOf('2', { eventName: 'clean', dirt: '\ufffd is their own' }),
    recordOf('3', { link: { id: 'l', title: bad }, country: bad, click: { country: 'DE' } }),
  ]);
  expect(tally).toMatchObject({ new: 3, sanitized: 2 });
  const good = 'a\ufffdb\ufffdc';
  const [one, two, three] = await rowsOf(source);
  expect(one).toMatchObject({ event_name: good, dirt: good, metadata: `{"${good}": ["${good}"]}` });
  expect(one?._extra).toEqual({ _mended: ['event_name', 'metadata', 'dirt'] });
  expect(two).toMatchObject({ event_name: 'clean', dirt: '\ufffd is their own', _extra: null });
  expect(three?._extra).toEqual({ country: good, _mended: ['link_title', '_extra'] });
});

it('does not count a row as changed when a joined column is or was sanitized', async () => {
  const { send } = await feed();
  const titled = (title: string) => recordOf('1', { link: { id: 'l', title } });
  await send([titled('clean')]);
  expect(await send([titled('dirty \0')])).toMatchObject({ changed: 0, unchanged: 1, sanitized: 1 });
  expect(await send([titled('clean')])).toMatchObject({ changed: 0, unchanged: 1, sanitized: 0 });
});

it('stores one row for two ids that are equal once sanitized, and does not fail on them again', async () => {
  const { send, source } = await feed();
  const twins = [recordOf('a\0', { eventName: 'first' }), recordOf('a\ufffd', { eventName: 'last' })];
  expect(await send(twins)).toMatchObject({ new: 1 });
  expect(await rowsOf(source)).toMatchObject([{ event_id: 'a\ufffd', event_name: 'last' }]);
  expect(await send(twins)).toMatchObject({ new: 0, changed: 0, unchanged: 1 });
});

it('stores an event whose id no index can hold under a hash, keeps the id, and says so', async () => {
  const { send, source } = await feed();
  // Incompressible, or Postgres would still fit it into an index entry.
  const long = Array.from({ length: 200 }, (_, i) => createHash('sha256').update(String(i)).digest('hex')).join('');
  const twin = `${long}2`;
  const events = [long, twin].map((id) =>
    recordOf(id, { link: { id: long }, customer: { id: long, email: 'a@b.test' } }),
  );
  expect(await send(events)).toMatchObject({ new: 2, typeMismatches: { event_id: 2 } });
  const rows = await rowsOf(source);
  expect(rows.map((row) => row.event_id)).toEqual([expect.stringMatching(/^h_\w{32}$/), expect.stringMatching(/^h_/)]);
  expect(rows.map((row) => row._extra)).toEqual(expect.arrayContaining([{ eventId: long }, { eventId: twin }]));
  expect(await send(events)).toMatchObject({ new: 0, changed: 0, unchanged: 2 });

  const clicks = await openFeed({ state: place.state, sinks: [place.createSink()], stream: 'clicks', source });
  await clicks.send([recordOf(long), recordOf('short')]);
  const touched = await forget(
    { state: place.state, sinks: [place.createSink()], holder: 'a test' },
    { source, kind: 'click', id: long },
  );
  expect(touched).toMatchObject({ 'attribution.clicks': 1 });
  expect(await clicks.send([recordOf(long), recordOf('short')])).toMatchObject({ new: 0, unchanged: 1 });
});

it('counts sanitized rows in the run', async () => {
  const sandbox = await sandboxWith(['dirty'], { rows: { clicks: 20, leads: 20, sales: 20 }, days: 5 });
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  for (const stream of ['clicks', 'leads', 'sales']) {
    const [{ sanitized, flagged } = { sanitized: 0, flagged: 0 }] = await engine.db.query<{
      sanitized: number;
      flagged: number;
    }>({
      text: `select r.rows_mended as sanitized,
          (select count(*) from attribution.${stream} where _source = $1 and _extra ? '_mended') as flagged
        from tributary.runs r where source = $1 and stream = $2`,
      values: [sourceOf(config), stream],
    });
    expect(flagged).toBeGreaterThan(0);
    expect(sanitized).toBeGreaterThanOrEqual(flagged);
  }
});
