import { describe, expect, test } from 'vitest';
import { at, idsOf, plainSandbox, rows, sandboxWith, smallSandbox, sorted } from '../support/sandbox.ts';

describe('pages', () => {
  test('note 10, dropAfterLimit: short pages in the middle, the same rows gone every time', async () => {
    const sandbox = await sandboxWith(['dropAfterLimit=0.2']);
    const pages = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((page) => rows(sandbox, { page, limit: 100 })));
    const sizes = pages.map((page) => page.length);
    expect(sizes.slice(0, 9).every((size) => size > 0 && size < 100)).toBe(true);
    expect(sizes[9]).toBe(0);
    expect(sorted(idsOf(pages.flat()))).toEqual(sorted(sandbox.service.ids('clicks')));
    expect(sandbox.service.ids('clicks').length).toBeLessThan(900);
    const single = await Promise.all(Array.from({ length: 30 }, (_, i) => rows(sandbox, { page: i + 1, limit: 1 })));
    expect(single.some((page) => page.length === 0)).toBe(true);
  });
});

describe('identity and change', () => {
  test('note 14, duplicates: some ids come twice, with the same content', async () => {
    const sandbox = await sandboxWith(['duplicates=0.1'], { rows: { clicks: 800, leads: 300, sales: 200 } });
    for (const event of ['clicks', 'leads', 'sales'] as const) {
      const found = await rows(sandbox, { event });
      const twice = found.filter((row, i) => idsOf(found).indexOf(idsOf([row])[0] ?? '') !== i);
      expect(twice.length).toBeGreaterThan(5);
      for (const row of twice) {
        const twin = found.filter((other) => idsOf([other])[0] === idsOf([row])[0]);
        expect(twin).toHaveLength(2);
        expect(twin[0]).toEqual(twin[1]);
      }
    }
  });

  test('note 14, rewrites: the same eventId comes again later with other content', async () => {
    const sandbox = await sandboxWith(['rewrites=0.2']);
    expect(new Set(sandbox.service.ids('clicks')).size).toBe(900);
    for (const event of ['leads', 'sales'] as const) {
      const found = await rows(sandbox, { event, sortOrder: 'asc' });
      const later = found.filter((row) => String(row.eventName).endsWith('(corrected)'));
      expect(later.length).toBeGreaterThan(10);
      for (const row of later) {
        const [old] = found.filter((other) => other.eventId === row.eventId && other !== row);
        expect(String(old?.timestamp) < String(row.timestamp)).toBe(true);
        expect(old?.metadata).not.toEqual(row.metadata);
        if (event === 'sales') expect(old?.saleAmount).not.toBe(row.saleAmount);
      }
    }
  });

  test('note 15, volatile: counters, lastClicked, updatedAt and generated names differ between two reads', async () => {
    const sandbox = await sandboxWith(['volatile']);
    const [first = [], second = []] = [
      await rows(sandbox, { event: 'leads' }),
      await rows(sandbox, { event: 'leads' }),
    ];
    const changed = new Set<string>();
    for (const [i, row] of first.entries()) {
      for (const part of ['link', 'click', 'customer']) {
        for (const field of Object.keys(row[part] as object)) {
          const path = `${part}.${field}`;
          if (JSON.stringify(at(row, path)) !== JSON.stringify(at(second[i] ?? {}, path))) changed.add(path);
        }
      }
    }
    const counters = ['clicks', 'leads', 'conversions', 'sales', 'saleAmount', 'lastClicked', 'updatedAt'];
    expect([...changed].sort()).toEqual(['customer.name', ...counters.map((name) => `link.${name}`)].sort());
    expect(first.map((row) => row.eventId)).toEqual(second.map((row) => row.eventId));
  });

  test('note 16, deletedCustomers: a placeholder stands for the customer', async () => {
    const sandbox = await smallSandbox();
    const before = await rows(sandbox, { event: 'sales' });
    sandbox.service.traits = { deletedCustomers: 0.3 };
    const after = await rows(sandbox, { event: 'sales' });
    expect(idsOf(after)).toEqual(idsOf(before));
    const deleted = after.filter((row) => at(row, 'customer.name') === 'Deleted customer');
    expect(deleted.length).toBeGreaterThan(10);
    expect(deleted.length).toBeLessThan(150);
    for (const row of deleted) expect(at(row, 'customer.email')).toBeNull();
    expect(after.map((row) => at(row, 'customer.id'))).toEqual(before.map((row) => at(row, 'customer.id')));
  });

  test('note 17, lateness: an event happens now and is seen later', async () => {
    let now = Date.UTC(2026, 5, 1);
    const sandbox = await plainSandbox({ traits: { lateness: 90_000 }, now: () => now });
    const ids = sandbox.service.arrive('leads', 5);
    expect(sandbox.service.stats()).toMatchObject({ waiting: 5, rows: { leads: 300 } });
    now += 89_000;
    expect(await rows(sandbox, { event: 'leads' })).toHaveLength(300);
    now += 1000;
    const seen = await rows(sandbox, { event: 'leads' });
    expect(seen).toHaveLength(305);
    expect(sorted(idsOf(seen.slice(0, 5)))).toEqual(sorted(ids));
  });
});
