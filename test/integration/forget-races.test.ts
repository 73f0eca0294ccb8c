import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { forget, type Touched } from '../../src/sync/maintain/forget.ts';
import { dump, linesWith } from '../support/dump.ts';
import { untilWaiting } from '../support/locks.ts';
import { postgresPlace } from '../support/postgres-place.ts';
import { createWriter, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';

describe.each([true, false])('a running sync (one database: %s)', (sameDatabase) => {
  const person = {
    customer_id: 'cus_1',
    customer_name: 'Ada',
    customer_email: 'ada@x.test',
    click_id: 'c1',
    ip: '10.0.0.1',
  };
  const none = { customer_id: null, customer_name: null, customer_email: null, click_id: null, ip: null };
  let place: Awaited<ReturnType<typeof postgresPlace>>;
  beforeAll(async () => {
    place = await postgresPlace({ sameDatabase, schema: 'attribution' });
    await place.createSink().prepare(STREAMS.leads);
  });
  afterAll(() => place.close());

  const forgetCustomer = (source: string): Promise<Touched> =>
    forget(
      { state: place.state, sinks: [place.createSink()], holder: 'a test' },
      { source, kind: 'customer', id: 'cus_1' },
    );

  it('cannot write what was forgotten after the read', async () => {
    const writer = await createWriter(place, STREAMS.leads);
    const { source } = writer.lease;
    const batch = await place.createSink().open(STREAMS.leads);
    await batch.write([rowOf(STREAMS.leads, 'e1', NOON, person, { phone: '1' })]);
    expect(await forgetCustomer(source)).toMatchObject({ 'attribution.leads': 0 });
    await batch.commit(writer.advance(), [{ record: { customer: { id: 'cus_1' } }, reason: 'of no use' }]);
    expect((await rowsOf(place, STREAMS.leads, source)).get('e1')).toMatchObject({ ...none, _extra: null });
    expect(linesWith(await dump(place.state), /^quarantine .*cus_1/)).toEqual([]);
  });

  it('delays a forget while it writes the same person', async () => {
    const writer = await createWriter(place, STREAMS.leads);
    const { source } = writer.lease;
    // Another transaction holds the key: the commit blocks midway.
    const blocker = await place.db.begin();
    await blocker.query({
      text: `insert into attribution.leads (_source, event_id, event, "timestamp", _run_id) values ($1, 'e1', '', now(), '')`,
      values: [source],
    });
    const committing = writer.commit([rowOf(STREAMS.leads, 'e1', NOON, person)]);
    await untilWaiting(place.db);
    const forgetting = forgetCustomer(source);
    const first = await Promise.race([
      forgetting.then(() => 'forget'),
      untilWaiting(place.state, sameDatabase ? 2 : 1).then(() => 'both wait'),
    ]);
    await blocker.rollback();
    await committing;
    expect(await forgetting).toMatchObject({ 'attribution.leads': 1 });
    expect(first).toBe('both wait');
    expect((await rowsOf(place, STREAMS.leads, source)).get('e1')).toMatchObject(none);
  });
});
