import { coerce, isNone, MISFIT, nearest, type Value } from './coerce.ts';
import type { Column } from './columns.ts';
import type { Extra, JsonObject } from './extra.ts';
import { createWalk, type Walk } from './walk.ts';

/** What was noticed on the way, beside the values. */
export interface Findings {
  extra: Extra;
  contradictions: string[];
  misfits: string[];
}

export type ReadColumns = (record: JsonObject, findings: Findings) => Value[];

/** Compiles columns into the function that reads them all: paths, kinds and aliases are looked up once, here. */
export function createReadColumns(columns: readonly Column[]): ReadColumns {
  const walk = createWalk(columns.flatMap(({ from }) => from.map(({ path }) => path)));
  const placeOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const plans = columns.map((column) => ({
    kind: column.kind,
    /** Where the one field of a column stands; -1 for a column with two. */
    at: column.from.length === 1 ? walk.placeOf(column.from[0]?.path ?? '') : -1,
    read: compile(column, walk, placeOf),
  }));

  return (record, findings) => {
    const raw = walk.read(record, findings.extra);
    const values = new Array<Value>(plans.length).fill(null);
    plans.forEach(({ kind, at, read }, i) => {
      // Most columns have one field, which fits; for the others a call into their own reader is worth its price.
      const value = at < 0 ? MISFIT : coerce(kind, raw[at]);
      values[i] = value === MISFIT ? read(raw, findings, values) : value;
    });
    return values;
  };
}

type Reader = (raw: readonly unknown[], findings: Findings, values: readonly Value[]) => Value;

function compile(column: Column, walk: Walk, placeOf: (name: string) => number): Reader {
  const [first, second] = column.from;
  if (!first) throw new Error(`column ${column.name} has no origin`);
  if (!second) return misfit(column, walk.placeOf(first.path), keeper(first.path));
  if (column.deprecated === undefined || first.via) return paired(column, walk);
  return repeated(column, walk.placeOf(second.path), placeOf(column.deprecated));
}

/** One field, one column, and a value that does not fit: it is counted and carried, and the nearest that fits stands in its place. */
function misfit(column: Column, at: number, keep: Keep): Reader {
  return (raw, { extra, misfits }) => {
    misfits.push(column.name);
    keep(extra, raw[at]);
    return nearest(column.kind, raw[at]);
  };
}

/** A field with a second name: the first that has a value is taken, and the other is kept where it disagrees. */
function paired(column: Column, walk: Walk): Reader {
  const { kind } = column;
  const places = column.from.map(({ path }) => walk.placeOf(path));
  const origins = column.from.map(({ path, via }, i) => ({
    at: places[i] ?? 0,
    other: places[1 - i] ?? 0,
    via,
    keep: keeper(path),
  }));
  const [first = 0, second = 0] = places;
  const sameShape = origins.every(({ via }) => via === undefined);
  // Where the shapes differ, the deprecated column is the one that can tell: two tag ids compare, a list and an id do not.
  const tells = origins.at(-1)?.via === undefined;
  const name = column.deprecated ?? column.name;

  return (raw, { extra, contradictions, misfits }) => {
    // Both say the same, or only the first says anything: the usual case.
    if (sameShape && (raw[second] === undefined || raw[second] === raw[first])) {
      const value = coerce(kind, raw[first]);
      if (value !== MISFIT) return value;
    }
    let found: Value = null;
    let fits = true;
    for (const { at, other, via, keep } of origins) {
      const given = raw[at];
      if (given === undefined || given === null) continue;
      const value = coerce(kind, via ? via(given, raw[other]) : given);
      if (value === MISFIT) {
        // What was only derived stands whole in the column of its own field.
        if (via) continue;
        fits = false;
        keep(extra, given);
        found ??= nearest(kind, given);
      } else if (isNone(found)) {
        if (found === null || !isNone(value)) found = value;
      } else if (tells && !isNone(value) && value !== found) {
        contradictions.push(name);
        keep(extra, given);
      }
    }
    if (!fits) misfits.push(column.name);
    return found;
  };
}

/** A deprecated name repeats its canonical column, which has looked at both fields and reported what it found. */
function repeated({ kind }: Column, own: number, canonical: number): Reader {
  return (raw, _findings, values) => {
    const said = values[canonical] as Value;
    if (kind === 'text' && typeof said === 'string') return said;
    // A number that is no boolean (`qr: 2`) says nothing to the canonical column and still fits this one.
    const value = coerce(kind, isNone(said) ? raw[own] : said);
    return value === MISFIT ? null : value;
  };
}

type Keep = (extra: Extra, value: unknown) => void;

function keeper(path: string): Keep {
  const [first = '', second] = path.split('.');
  return second === undefined
    ? (extra, value) => extra.put(undefined, first, value)
    : (extra, value) => extra.put(first, second, value);
}
