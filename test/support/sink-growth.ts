import { expect, it } from 'vitest';
import { readCursor } from '../../src/cursor/cursors.ts';
import type { Kind, Value } from '../../src/model/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { STREAMS, type Stream } from '../../src/model/streams.ts';
import { certified, createWriter, MINUTE, NOON, receipt, rowOf, rowsOf, type SinkPlace } from './sink-harness.ts';

/** Requirements for every sink on growing streams, missing rows, and the start and end of a run. */
export function growthSuite(place: () => SinkPlace): void {
  const grown = (kind: Kind): Stream =>
    evolvedStream(STREAMS.leads, [{ path: 'click.grown', name: 'click_grown', kind }]);

  it('accepts later columns, and keeps existing values in a widened one', async () => {
    const steps: Array<[Kind, Value, Value]> = [
      ['integer', 2n ** 53n + 1n, 2n ** 53n + 1n],
      ['number', 0.5, 0.5],
      ['text', 'x', 'x'],
      ['json', { deep: [1] }, { deep: [1] }],
    ];
    const before = await createWriter(place(), STREAMS.leads);
    const { source } = before.lease;
    await before.commit([rowOf(STREAMS.leads, 'none', NOON)]);
    await before.lease.release();
    const ids: string[] = [];
    for (const [kind, value] of steps) {
      const stream = grown(kind);
      await place().createSink().prepare(stream);
      const writer = await createWriter(place(), stream, source);
      expect(await writer.commit([rowOf(stream, kind, NOON, { click_grown: value })])).toEqual(receipt({ new: 1 }));
      await writer.lease.release();
      ids.push(kind);
      const rows = await rowsOf(place(), stream, source);
      expect([...rows.keys()].sort()).toEqual(['none', ...ids].sort());
      expect(rows.get('none')?.click_grown).toBeNull();
      expect(rows.get(kind)?.click_grown).toEqual(value);
      // Values of an earlier kind read the same in the wider one.
      for (const [older, , held] of steps.slice(0, ids.length - 1)) {
        expect(String(rows.get(older)?.click_grown)).toBe(String(held));
      }
    }
  });

  it('keeps and marks rows missing from a completely read window, and unmarks them when they are back', async () => {
    const stream = STREAMS.sales;
    const writer = await createWriter(place(), stream);
    const [a, b, later] = [0, 1, 5].map((minute) => rowOf(stream, `m${minute}`, NOON + minute * MINUTE));
    if (!a || !b || !later) throw new Error('three rows');
    await writer.commit([a, b, later]);
    const missing = async (): Promise<string[]> =>
      [...(await rowsOf(place(), stream, writer.lease.source))]
        .filter(([, row]) => row._missing_since !== null)
        .map(([id]) => id);
    const spans = [{ ...certified(NOON, NOON + 5 * MINUTE, 1), whole: true }];
    expect(await writer.commit([a], { spans })).toEqual(receipt({ unchanged: 1 }));
    expect(await missing()).toEqual(['m1']);
    await writer.commit([b]);
    expect(await missing()).toEqual([]);
    expect((await rowsOf(place(), stream, writer.lease.source)).size).toBe(3);
  });

  it('recovers nothing without damage, and shows the present rows', async () => {
    const writer = await createWriter(place(), STREAMS.clicks);
    const { source, stream, epoch } = writer.lease;
    const sink = place().createSink();
    await sink.recover?.({ source, stream, epoch });
    await sink.publishProgress?.({ source, stream });
    expect(await readCursor(place().state, writer.advance())).toBeUndefined();
    await writer.commit([rowOf(STREAMS.clicks, 'a', NOON)], { spans: [certified(NOON, NOON + MINUTE, 1)] });
    const cursor = await readCursor(place().state, writer.advance());
    await sink.publishProgress?.({ source, stream });
    await sink.recover?.({ source, stream, epoch });
    expect(await readCursor(place().state, writer.advance())).toEqual(cursor);
    expect((await rowsOf(place(), STREAMS.clicks, source)).size).toBe(1);
  });
}
