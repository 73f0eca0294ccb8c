import fc from 'fast-check';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';

/** Records that no service should send: junk in every place, among valid fields. */

/** An object with own keys only, including `__proto__`, as from JSON.parse. */
export function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return object;
}

const NASTY_KEYS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  'a.b',
  'click.id',
  '0',
  'NUL\0',
  '\ud800',
];

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\0', 'a\0b', '\ud800', '\udfff x', '\\.', 'tab\t\n', 'Unknown', 'true', '1', '9007199254740993'),
  fc.constantFrom('2026-11-14T10:00:00.000Z', '2026-02-30', '1705314600', 'Mon Jan 15 2024 10:30:00 GMT+0000'),
);

const leaf = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, 1, -0, 1e300, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(9_007_199_254_740_993n, -(2n ** 63n), 2n ** 63n, 2n ** 200n, 1_705_314_600_123_456_789n),
);

const key = fc.oneof(fc.string(), fc.constantFrom(...NASTY_KEYS, 'id', 'click', 'link', 'timestamp', 'tags'));

const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('json'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('json')), { maxLength: 4 }).map(objectOf),
  ),
}));

export const anyJson: fc.Arbitrary<unknown> = json as fc.Arbitrary<unknown>;

/** The paths that a stream's columns read, except those that privacy drops. */
const pathsOf = (stream: StreamName): string[] => [
  ...new Set(
    STREAMS[stream].columns.flatMap((column) =>
      column.personal === 'linkPassword' ? [] : column.from.map(({ path }) => path),
    ),
  ),
];

/** A record with any keys and values, and most of those that the stream's columns read; often with an identity and a time. */
export function oddRecord(stream: StreamName): fc.Arbitrary<object> {
  const known = fc
    .subarray(pathsOf(stream))
    .chain((paths) => fc.tuple(...paths.map((path) => fc.tuple(fc.constant(path), anyJson))));
  const inner = fc.array(fc.tuple(fc.constantFrom('click', 'link', 'customer', 'sale'), key, anyJson), {
    maxLength: 4,
  });
  const outer = fc.array(fc.tuple(fc.oneof(key, fc.constantFrom('click', 'link', 'customer', 'sale')), anyJson), {
    maxLength: 4,
  });
  const sound = fc.option(fc.tuple(text, fc.constantFrom('2026-11-14T10:00:00Z', 1_705_314_600)), { freq: 5 });
  return fc.tuple(known, inner, outer, sound).map(([fields, unknown, whole, base]) => {
    const top = new Map<string, unknown>(
      base
        ? [
            ['eventId', `e${base[0]}`],
            ['timestamp', base[1]],
          ]
        : [],
    );
    const inside = new Map<string, Map<string, unknown>>();
    const into = (parent: string): Map<string, unknown> => {
      const entries = inside.get(parent) ?? new Map<string, unknown>();
      inside.set(parent, entries);
      return entries;
    };
    for (const [path, value] of fields) {
      const [first = '', second] = path.split('.');
      if (second !== undefined) into(first).set(second, value);
      else if (!top.has(first)) top.set(first, value);
    }
    for (const [parent, name, value] of unknown) into(parent).set(name, value);
    for (const [parent, entries] of inside) top.set(parent, objectOf([...entries]));
    for (const [name, value] of whole) top.set(name, value);
    return objectOf([...top]);
  });
}

/** The same value with the keys of every object in another order. */
export function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null) return value;
  return objectOf(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, reordered(inner)] as const),
  );
}
