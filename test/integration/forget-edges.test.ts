import { describe, expect, it } from 'vitest';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { openEngine } from '../support/engine.ts';

describe('missing tables', () => {
  it('are skipped', async () => {
    const engine = await openEngine();
    try {
      const sink = createPostgresSink({ name: 'w', db: engine.db, schema: 'attribution', state: engine.db });
      const deps = { state: engine.db, sinks: [sink], holder: 'a test' };
      expect(await forget(deps, { source: 's', kind: 'customer', id: 'c' })).toEqual({ 'tributary.quarantine': 0 });
      await engine.db.query({
        text: 'create schema attribution create table clicks (_source text, event_id text) create table _receipts (source text)',
      });
      expect(await forget(deps, { source: 's', kind: 'click', id: 'c' })).toEqual({
        'attribution.clicks': 0,
        'tributary.quarantine': 0,
      });
      expect(await forget(deps, { source: 's', kind: 'source' })).toMatchObject({
        'attribution.clicks': 0,
        'attribution._receipts': 0,
      });
    } finally {
      await engine.close();
    }
  });
});

describe('quarantined records', () => {
  it('are erased if they contain the id anywhere, as any type, and stay if it is part of another', async () => {
    const engine = await openEngine();
    try {
      const put = (id: number, record: unknown) =>
        engine.db.query({
          text: `insert into tributary.quarantine (source, stream, digest, reason, record, run_id)
            values ('s', 'leads', $1, '', $2, '')`,
          values: [id, JSON.stringify(record)],
        });
      const named = [
        { customer: { id: '4711' } },
        { customer: { id: 4711 } },
        { 4711: 1 },
        'id=4711;',
        ['a', '{"id":"4711"}'],
      ];
      const others = [{ customer: { id: '14711' } }, { at: 47112 }, { note: 'x4711' }];
      for (const [i, record] of [...named, ...others].entries()) await put(i, record);
      const touched = await forget(
        { state: engine.db, sinks: [], holder: 't' },
        { source: 's', kind: 'customer', id: '4711' },
      );
      expect(touched).toEqual({ 'tributary.quarantine': named.length });
      const left = await engine.db.query<{ record: string }>({
        text: 'select record from tributary.quarantine order by id',
      });
      expect(left.map(({ record }) => JSON.parse(record) as unknown)).toEqual(others);
    } finally {
      await engine.close();
    }
  });
});
