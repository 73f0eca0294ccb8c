import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storableText } from '../../src/cursor/database/sql.ts';
import type { Kind, Value } from '../../src/model/columns.ts';
import { type EvolvedColumn, findSchemaChanges, MOST_EVOLVED, promote, widen } from '../../src/model/evolution.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { JsonObject } from '../../src/model/json.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { stable } from '../support/flat.ts';
import { hostileName } from '../support/hostile-names.ts';
import { NOON, rowOf } from '../support/sink-harness.ts';

const stream = STREAMS.sales;

const key = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom('ua', 'UA', 'a.b', 'id', '__proto__', '_source', 'xmin', 'é', 'x'.repeat(80)),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
  { weight: 2, arbitrary: hostileName },
);
const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, '', true, false, 0, 1, -5, 1.5, 'text', '7', '2026-11-14T10:00:00.000Z', 2n ** 60n, 2n ** 80n),
  fc.constantFrom([], {}, [1, 'two'], { deep: { er: 1 } }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const bareObject = (entries: ReadonlyArray<readonly [string, unknown]>): JsonObject => {
  const object = Object.create(null) as JsonObject;
  for (const [name, inner] of entries) object[name] = inner;
  return object;
};
const fields = fc.array(fc.tuple(key, value), { maxLength: 6 }).map(bareObject);
const extra = fc
  .tuple(fields, fc.array(fc.tuple(fc.constantFrom('click', 'link', 'customer', 'sale'), fields), { maxLength: 3 }))
  .map(([top, inner]): Row['extra'] => bareObject([...Object.entries(top), ...inner]));
const batch = fc
  .array(fc.option(extra, { nil: null }), { maxLength: 5 })
  .map((extras) => extras.map((one, i) => rowOf(stream, `e${i}`, NOON, {}, one)));

const after = (known: readonly EvolvedColumn[], rows: readonly Row[]): EvolvedColumn[] => {
  const changes = findSchemaChanges(stream, known, rows);
  const widened = known.map((column) => changes.find(({ path }) => path === column.path) ?? column);
  return [...widened, ...changes.filter(({ was }) => was === undefined)];
};
const knowledge = fc.array(batch, { maxLength: 3 }).map((batches) => batches.reduce(after, [] as EvolvedColumn[]));

/** Each field with its value, from `_extra` by path or from the column of its path. */
function fieldsOf({ extra: rest }: Pick<Row, 'extra'>): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [name, inner] of Object.entries(rest ?? {})) {
    const isParent = ['click', 'link', 'customer', 'sale'].includes(name);
    const isOpen = isParent && typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    if (isOpen && Object.keys(inner).length > 0) {
      for (const [deep, deeper] of Object.entries(inner)) found.set(JSON.stringify([name, deep]), deeper);
    } else found.set(JSON.stringify([name]), inner);
  }
  return found;
}

/** A value as a column of the kind represents it; none for an empty one. */
function said(kind: Kind, of: unknown): string {
  if (of === null || of === '') return 'none';
  if (kind === 'timestamp') return String(Date.parse(String(of)));
  return kind === 'text' ? String(of) : stable(of);
}

describe('findSchemaChanges', () => {
  it('gives columns only to fields whose path survives a round trip through the state', () => {
    fc.assert(
      fc.property(knowledge, batch, (known, rows) => {
        for (const { path, name } of findSchemaChanges(stream, known, rows)) {
          expect(storableText(path)).toBe(path);
          expect(path.length).toBeLessThanOrEqual(1000);
          expect(name).toMatch(/^[a-z][a-z0-9_]{0,62}$/);
        }
      }),
    );
  });
});

describe('promote', () => {
  it('loses no field: each is in its column or in _extra, with its value', () => {
    fc.assert(
      fc.property(knowledge, batch, (known, rows) => {
        const evolved = after(known, rows);
        const promoted = promote(stream, evolved, rows);
        expect(promoted).toHaveLength(rows.length);
        rows.forEach((row, i) => {
          const moved = promoted[i];
          expect(moved?.values.slice(0, stream.columns.length)).toEqual(row.values);
          const left = fieldsOf({ extra: moved?.extra ?? null });
          const gone = [...fieldsOf(row)].filter(([path]) => !left.has(path)).map(([, inner]) => inner);
          for (const [path, inner] of left) expect(stable(inner)).toBe(stable(fieldsOf(row).get(path)));
          const columns = evolved.map(({ kind }, j) => ({
            kind,
            held: moved?.values[stream.columns.length + j] as Value,
          }));
          const held = columns.filter((column) => column.held !== null);
          // Values removed from `_extra` are in the columns, unchanged.
          const solid = gone.filter((inner) => inner !== null && inner !== '');
          expect(held.filter(({ held: v }) => v !== '')).toHaveLength(solid.length);
          for (const { kind, held: v } of held) {
            const shown = kind === 'timestamp' ? String(v) : said(kind, v);
            if (v !== '') expect(solid.map((inner) => said(kind, inner))).toContain(shown);
          }
        });
      }),
      { numRuns: 300 },
    );
  });
});

describe('findSchemaChanges', () => {
  it('is deterministic, independent of the order of rows', () => {
    fc.assert(
      fc.property(knowledge, batch, (known, rows) => {
        expect(findSchemaChanges(stream, known, [...rows].reverse())).toEqual(findSchemaChanges(stream, known, rows));
      }),
    );
  });

  it('is monotone: kinds only widen, names and order stay, and a repeated batch changes nothing', () => {
    fc.assert(
      fc.property(knowledge, batch, (known, rows) => {
        const next = after(known, rows);
        expect(next.slice(0, known.length).map(({ path, name }) => [path, name])).toEqual(
          known.map(({ path, name }) => [path, name]),
        );
        known.forEach(({ kind }, i) => {
          expect(widen(kind, next[i]?.kind ?? kind)).toBe(next[i]?.kind);
        });
        expect(findSchemaChanges(stream, next, rows)).toEqual([]);
        const names = [...stream.columns, ...next].map(({ name }) => name);
        expect(new Set(names).size).toBe(names.length);
        for (const { name } of next) expect(name).toMatch(/^[a-z][a-z0-9_]{0,62}$/);
        expect(next.length).toBeLessThanOrEqual(MOST_EVOLVED);
      }),
      { numRuns: 300 },
    );
  });
});
