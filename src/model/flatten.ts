import { type Column, coerce, isNone, MISMATCH, nearest, type Value } from './columns.ts';
import { BadRecord } from './errors.ts';
import { fitId, identify } from './identity.ts';
import type { Instant } from './instant.ts';
import {
  createExtra,
  createWalk,
  type Extra,
  isObject,
  isShared,
  type JsonObject,
  refuseTooDeep,
  type Walk,
  type WalkedLink,
} from './json.ts';
import { createRedact, createWithhold, DEFAULT_PRIVACY, type Privacy, type Treatment, treat } from './privacy.ts';
import type { Stream } from './streams.ts';

/** One event, flat: its values are in the order of the stream's columns. */
export interface Row {
  id: string;
  at: Instant;
  values: readonly Value[];
  /** Values that no column holds: unknown fields, values that do not fit, aliases that contradict. */
  extra: JsonObject | null;
  /** Columns whose alias contradicted the canonical field. The row has the canonical value. */
  contradictions: readonly string[];
  typeMismatches: readonly string[];
}

export type Flatten = (record: unknown) => Row;

/** Never throws on odd data, except `BadRecord` for a record without identity or time, or nested too deeply. */
export function createFlatten(stream: Stream, privacy: Privacy = DEFAULT_PRIVACY): Flatten {
  const { columns } = stream;
  const readColumns = createReadColumns(columns);
  const withhold = createWithhold(privacy);
  const redact = createRedact(privacy);
  const treated = columns
    .map((column, i) => ({ i, treatment: treatmentOf(column, privacy) }))
    .filter(({ treatment }) => treatment !== 'keep');
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const [event, timestamp, eventId] = [place('event'), place('timestamp'), place('event_id')];
  const [clickId, clickTime] = [place('click_id'), place('click_timestamp')];
  const isClick = stream.name === 'clicks';

  const flatten: Flatten = (record) => {
    if (!isObject(record)) throw new BadRecord(`the record is not an object but ${nameOf(record)}`);
    const findings: Findings = { extra: createExtra(withhold), contradictions: [], typeMismatches: [] };
    const values = readColumns(record, findings);

    values[event] ||= stream.event;
    // A click's own time is the same; on leads and sales it is the time of another event and no substitute.
    if (isClick) values[timestamp] ??= values[clickTime] ?? null;
    const at = values[timestamp];
    if (typeof at !== 'number') throw new BadRecord('the record has no time: `timestamp` is missing or cannot be read');

    const given = values[eventId];
    const whole = (isClick && values[clickId]) || given || identify(stream, values);
    if (!whole) {
      throw new BadRecord('the record has no identity: no id, and no link, click, customer or name to identify it by');
    }
    const id = fitId(String(whole));
    if (id !== whole) findings.typeMismatches.push('event_id');
    if (given && given !== id) findings.extra.put(undefined, 'eventId', record.eventId);
    values[eventId] = id;

    // Last, because the id of an event must not depend on the privacy settings.
    for (const { i, treatment } of treated) values[i] = treat(values[i] ?? null, treatment, privacy.salt);
    const { extra, contradictions, typeMismatches } = findings;
    return { id, at, values, extra: extra.take(), contradictions, typeMismatches };
  };

  return (record) => {
    try {
      return flatten(record);
    } catch (error) {
      // Recovery: left to the caller, who gets only what may be kept of the record, and need not know about privacy.
      if (error instanceof BadRecord) error.remains = redact(record);
      throw error;
    }
  };
}

export const treatmentOf = (column: Column, privacy: Privacy): Treatment =>
  column.personal ? privacy[column.personal] : 'keep';

const nameOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;

interface Findings {
  extra: Extra;
  contradictions: string[];
  typeMismatches: string[];
}

type ReadColumns = (record: JsonObject, findings: Findings) => Value[];

/** Compiles columns into the function that reads them all: paths, kinds and aliases are looked up once, here. */
export function createReadColumns(columns: readonly Column[]): ReadColumns {
  const walk = createWalk(columns.flatMap(({ from }) => from.map(({ path }) => path)));
  const placeOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const plans = columns.map((column, place) => ({
    place,
    kind: column.kind,
    isOfLink: column.from.every(({ path }) => path.startsWith('link.')),
    /** The position of a column's only field; -1 for a column with two. */
    at: column.from.length === 1 ? walk.placeOf(column.from[0]?.path ?? '') : -1,
    read: compile(column, walk, placeOf),
  }));
  const ofLink = plans.filter(({ isOfLink }) => isOfLink);
  const others = plans.filter(({ isOfLink }) => !isOfLink);

  const fill = (values: Value[], some: typeof plans, raw: readonly unknown[], findings: Findings): void => {
    for (const { place, kind, at, read } of some) {
      // Most columns have one field, which fits; only the others pay for a call to their own reader.
      const value = at < 0 ? MISMATCH : coerce(kind, raw[at]);
      const found = value === MISMATCH ? read(raw, findings, values) : value;
      if (kind === 'json') refuseTooDeep(found);
      values[place] = found;
    }
  };

  const readLink = (link: JsonObject): ReadLink | null => {
    const unknown: Array<[key: string, value: unknown]> = [];
    const extra: Extra = { put: (_parent, key, value) => unknown.push([key, value]), take: () => null };
    const findings: Findings = { extra, contradictions: [], typeMismatches: [] };
    const values = new Array<Value>(columns.length).fill(null);
    const raw = walk.read({ link }, extra);
    const fields = unknown.length;
    fill(values, ofLink, raw, findings);
    return findings.contradictions.length + findings.typeMismatches.length + unknown.length > fields
      ? null
      : { link, raw, values, unknown };
  };
  const links = new WeakMap<object, ReadLink | null>();
  /** Null if the link is not shared, or has odd values: then it is read with every record. */
  const knownLink = ({ link }: JsonObject): ReadLink | null => {
    if (!isObject(link) || !isShared(link)) return null;
    let known = links.get(link);
    if (known === undefined) {
      known = readLink(link);
      links.set(link, known);
    }
    return known;
  };

  return (record, findings) => {
    const known = knownLink(record);
    const raw = walk.read(record, findings.extra, known);
    const values = known ? known.values.slice() : new Array<Value>(columns.length).fill(null);
    fill(values, known ? others : plans, raw, findings);
    return values;
  };
}

interface ReadLink extends WalkedLink {
  /** All columns of the record; null except for those of the link. */
  values: readonly Value[];
}

type Reader = (raw: readonly unknown[], findings: Findings, values: readonly Value[]) => Value;

function compile(column: Column, walk: Walk, placeOf: (name: string) => number): Reader {
  const [first, second] = column.from;
  if (!first) throw new Error(`column ${column.name} has no origin`);
  if (!second) return mismatch(column, walk.placeOf(first.path), keeper(first.path));
  if (column.deprecated === undefined || first.via) return paired(column, walk);
  return repeated(column, walk.placeOf(second.path), placeOf(column.deprecated));
}

/** A value that does not fit its column: it is counted and kept in `_extra`, and the column gets the nearest value that fits. */
function mismatch(column: Column, at: number, keep: Keep): Reader {
  return (raw, { extra, typeMismatches }) => {
    typeMismatches.push(column.name);
    keep(extra, raw[at]);
    return nearest(column.kind, raw[at]);
  };
}

/** A field with a second name: the first name with a value wins, and the other value is kept if it disagrees. */
function paired(column: Column, walk: Walk): Reader {
  const { kind } = column;
  const positions = column.from.map(({ path }) => walk.placeOf(path));
  const origins = column.from.map(({ path, via }, i) => ({
    at: positions[i] ?? 0,
    other: positions[1 - i] ?? 0,
    via,
    keep: keeper(path),
  }));
  const [first = 0, second = 0] = positions;
  const sameShape = origins.every(({ via }) => via === undefined);
  // If the shapes differ, the deprecated column's are compared: two tag ids compare, a list and an id do not.
  const isComparable = origins.at(-1)?.via === undefined;
  const name = column.deprecated ?? column.name;

  return (raw, { extra, contradictions, typeMismatches }) => {
    // Both are equal, or only the first has a value: the usual case.
    if (sameShape && (raw[second] === undefined || raw[second] === raw[first])) {
      const value = coerce(kind, raw[first]);
      if (value !== MISMATCH) return value;
    }
    let found: Value = null;
    let fits = true;
    for (const { at, other, via, keep } of origins) {
      const given = raw[at];
      if (given === undefined || given === null) continue;
      const value = coerce(kind, via ? via(given, raw[other]) : given);
      if (value === MISMATCH) {
        // A derived value is complete in the column of its own field.
        if (via) continue;
        fits = false;
        keep(extra, given);
        found ??= nearest(kind, given);
      } else if (isNone(found)) {
        if (found === null || !isNone(value)) found = value;
      } else if (isComparable && !isNone(value) && value !== found) {
        contradictions.push(name);
        keep(extra, given);
      }
    }
    if (!fits) typeMismatches.push(column.name);
    return found;
  };
}

/** A deprecated column repeats its canonical column, which has read both fields and reported what it found. */
function repeated({ kind }: Column, own: number, canonical: number): Reader {
  return (raw, _findings, values) => {
    const said = values[canonical] as Value;
    if (kind === 'text' && typeof said === 'string') return said;
    // A number that is no boolean (`qr: 2`) does not fit the canonical column but fits this one.
    const value = coerce(kind, isNone(said) ? raw[own] : said);
    return value === MISMATCH ? null : value;
  };
}

type Keep = (extra: Extra, value: unknown) => void;

function keeper(path: string): Keep {
  const [first = '', second] = path.split('.');
  return second === undefined
    ? (extra, value) => extra.put(undefined, first, value)
    : (extra, value) => extra.put(first, second, value);
}
