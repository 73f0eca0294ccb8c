import { describe, expect, test } from 'vitest';
import { parseInstant } from '../../src/model/instant.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { allPages, ask, at, errorOf, idsOf, rows, sandboxWith, smallSandbox, sorted } from '../support/sandbox.ts';

const timeOf = (record: JsonObject): number => parseInstant(record.timestamp) ?? Number.NaN;
describe('time', () => {
  test.each([
    ['iso', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 1],
    ['seconds', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 1000],
    ['offset', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+02:00$/, 1],
    ['space', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/, 1],
    ['epoch', /^\d{10}$/, 1000],
    ['epoch-ms', /^\d{13}$/, 1],
    [
      'jsdate',
      /^[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)$/,
      1000,
    ],
  ])('note 4, timestampForm=%s is the same instant', async (form, pattern, resolution) => {
    const sandbox = await sandboxWith([`timestampForm=${form}`]);
    for (const row of await rows(sandbox)) {
      expect(String(row.timestamp)).toMatch(pattern);
      const exact = parseInstant(at(row, 'click.timestamp')) ?? Number.NaN;
      expect(timeOf(row)).toBe(Math.floor(exact / resolution) * resolution);
    }
  });

  test('note 5, ties: so many events of one instant', async () => {
    const sandbox = await sandboxWith(['ties=1200'], { rows: { clicks: 300, leads: 100, sales: 100 } });
    for (const event of ['clicks', 'leads', 'sales'] as const) {
      const pages = await allPages(sandbox, { event });
      const perInstant = new Map<number, number>();
      for (const row of pages.flat()) perInstant.set(timeOf(row), (perInstant.get(timeOf(row)) ?? 0) + 1);
      expect(Math.max(...perInstant.values())).toBeGreaterThanOrEqual(1200);
      expect(sorted(idsOf(pages.flat()))).toEqual(sorted(sandbox.service.ids(event)));
    }
    sandbox.service.traits = {};
    expect(sandbox.service.ids('clicks')).toHaveLength(300);
  });

  test('note 6, clickTimeIsEventTime', async () => {
    const sandbox = await smallSandbox();
    const differ = (row: JsonObject): boolean => row.timestamp !== at(row, 'click.timestamp');
    expect((await rows(sandbox, { event: 'leads' })).filter(differ).length).toBeGreaterThan(200);
    sandbox.service.traits = { clickTimeIsEventTime: true };
    for (const event of ['leads', 'sales']) expect((await rows(sandbox, { event })).filter(differ)).toEqual([]);
  });

  test('note 7, clockSkew: Date header, default end and new events run ahead', async () => {
    const sandbox = await sandboxWith(['clockSkew=2h']);
    const [id] = sandbox.service.arrive('clicks', 1);
    const response = await ask(sandbox, { limit: 1, end: 'now', start: '1 hours ago', sortOrder: 'desc' });
    const ahead = Date.parse(response.headers.get('date') ?? '') - Date.now();
    expect(Math.round(ahead / 600_000)).toBe(12);
    expect(sandbox.service.ids('clicks').at(-1)).toBe(id);
    expect(timeOf(sandbox.service.events('clicks').at(-1) ?? {})).toBeGreaterThan(Date.now() + 3_600_000);
  });

  test('note 8, founded: an earlier start is refused with 422', async () => {
    const sandbox = await sandboxWith(['founded=2024-06-01']);
    const response = await ask(sandbox, { start: '2024-05-31T23:59:59.999Z', end: '2026-01-01' });
    expect(response.status).toBe(422);
    expect((await errorOf(response)).message).toContain('2024-06-01');
    expect((await ask(sandbox, { start: '2024-06-01' })).status).toBe(200);
  });
});
