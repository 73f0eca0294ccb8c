import { COERCIONS, isNone, MISFIT, type Value } from './coerce.ts';
import type { Column } from './columns.ts';
import { BadRecord } from './errors.ts';
import { createExtra, type Extra, isObject, type JsonObject, refuseTooDeep } from './extra.ts';
import { identify } from './identity.ts';
import type { Instant } from './instant.ts';
import { createWithhold, DEFAULT_PRIVACY, type Privacy, type Treatment, treat } from './privacy.ts';
import type { Stream } from './streams.ts';
import { createWalk, type Walk } from './walk.ts';

/** One event, flat: its values stand in the order of the stream's columns. */
export interface Row {
  id: string;
  at: Instant;
  values: readonly Value[];
  /** What no column holds: unknown fields, values that do not fit, aliases that contradict. */
  extra: JsonObject | null;
  /** Columns whose alias said something else than the canonical field. The canonical value is in the row. */
  contradictions: readonly string[];
  /** Columns whose value did not fit their kind. */
  misfits: readonly string[];
}

export type Flatten = (record: unknown) => Row;

/**
 * Compiles a stream into the function that flattens its records: paths, kinds and aliases are looked up once, here.
 * The result never throws on odd data, except `BadRecord` where there is no identity or time, or no bottom.
 */
export function createFlatten(stream: Stream, privacy: Privacy = DEFAULT_PRIVACY): Flatten {
  const { columns } = stream;
  const walk = createWalk(columns.flatMap(({ from }) => from.map(({ path }) => path)));
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const readers = columns.map((column) => compile(column, walk, place));
  const treated = columns
    .map((column, i) => ({ i, treatment: treatmentOf(column, privacy) }))
    .filter(({ treatment }) => treatment !== 'keep');
  const withhold = createWithhold(privacy);
  const json = columns.flatMap((column, i) => (column.kind === 'json' ? [i] : []));
  const [event, timestamp, eventId] = [place('event'), place('timestamp'), place('event_id')];
  const [clickId, clickTime] = [place('click_id'), place('click_timestamp')];
  const isClick = stream.name === 'clicks';

  return (record) => {
    if (!isObject(record)) throw new BadRecord(`the record is not an object but ${nameOf(record)}`);
    const extra = createExtra(withhold);
    const values = new Array<Value>(readers.length).fill(null);
    const reading: Reading = { raw: walk.read(record, extra), values, extra, contradictions: [], misfits: [] };
    for (let i = 0; i < readers.length; i++) values[i] = (readers[i] as Reader)(reading);

    values[event] ||= stream.event;
    // A click's own time says the same; on leads and sales it is the time of another event and cannot stand in.
    if (isClick) values[timestamp] ??= values[clickTime] ?? null;
    const at = values[timestamp];
    if (typeof at !== 'number') throw new BadRecord('the record has no time: `timestamp` is missing or cannot be read');
    for (const i of json) refuseTooDeep(values[i]);

    const given = values[eventId];
    const id = (isClick && values[clickId]) || given || identify(stream, values);
    if (!id) {
      throw new BadRecord('the record has no identity: no id, and no link, click, customer or name to tell it by');
    }
    if (given && given !== id) extra.put(undefined, 'eventId', record.eventId);
    values[eventId] = id;

    // Last, because the id of an event must not depend on the privacy settings of the day.
    for (const { i, treatment } of treated) values[i] = treat(values[i] ?? null, treatment);
    const { contradictions, misfits } = reading;
    return { id: String(id), at, values, extra: extra.take(), contradictions, misfits };
  };
}

const treatmentOf = (column: Column, privacy: Privacy): Treatment =>
  column.personal ? privacy[column.personal] : 'keep';

interface Reading {
  /** What the record holds, by the places of the walk. */
  raw: readonly unknown[];
  /** What was read so far: a deprecated column stands after the one it repeats. */
  values: readonly Value[];
  extra: Extra;
  contradictions: string[];
  misfits: string[];
}

type Reader = (reading: Reading) => Value;

function compile(column: Column, walk: Walk, place: (name: string) => number): Reader {
  const [first, second] = column.from;
  if (!first) throw new Error(`column ${column.name} has no origin`);
  if (!second) return single(column, walk);
  if (column.deprecated === undefined || first.via) return paired(column, walk);
  return repeated(column, walk.placeOf(second.path), place(column.deprecated));
}

/** One field, one column: most of them. */
function single(column: Column, walk: Walk): Reader {
  const [{ path } = { path: '' }] = column.from;
  const read = COERCIONS[column.kind];
  const at = walk.placeOf(path);
  const keep = keeper(path);
  return (reading) => {
    const value = read(reading.raw[at]);
    if (value !== MISFIT) return value;
    reading.misfits.push(column.name);
    keep(reading.extra, reading.raw[at]);
    return null;
  };
}

/** A field with a second name: the first that has a value is taken, and the other is kept where it disagrees. */
function paired(column: Column, walk: Walk): Reader {
  const read = COERCIONS[column.kind];
  const places = column.from.map(({ path }) => walk.placeOf(path));
  const origins = column.from.map(({ path, via }, i) => ({
    at: walk.placeOf(path),
    other: places[1 - i] ?? 0,
    via,
    keep: keeper(path),
  }));
  // Where the shapes differ, the deprecated column is the one that can tell: two tag ids compare, a list and an id do not.
  const tells = origins.at(-1)?.via === undefined;
  const name = column.deprecated ?? column.name;

  return ({ raw, extra, contradictions, misfits }) => {
    let found: Value = null;
    let fits = true;
    for (const { at, other, via, keep } of origins) {
      const given = raw[at];
      if (given === undefined || given === null) continue;
      const value = read(via ? via(given, raw[other]) : given);
      if (value === MISFIT) {
        // What was only derived stands whole in the column of its own field.
        if (via) continue;
        fits = false;
        keep(extra, given);
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
function repeated(column: Column, own: number, canonical: number): Reader {
  const read = COERCIONS[column.kind];
  return ({ raw, values }) => {
    const said = values[canonical] ?? null;
    // A number that is no boolean (`qr: 2`) says nothing to the canonical column and still fits this one.
    const value = read(isNone(said) ? raw[own] : said);
    return value === MISFIT || value === null ? said : value;
  };
}

function keeper(path: string): (extra: Extra, value: unknown) => void {
  const [first = '', second] = path.split('.');
  return second === undefined
    ? (extra, value) => extra.put(undefined, first, value)
    : (extra, value) => extra.put(first, second, value);
}

const nameOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
