import { coerce, MISFIT, type Value } from './coerce.ts';
import type { Column } from './columns.ts';
import { BadRecord } from './errors.ts';
import { createExtra, type Extra, type JsonObject } from './extra.ts';
import { identify } from './identity.ts';
import type { Instant } from './instant.ts';
import { DEFAULT_PRIVACY, type Privacy, type Treatment, treat } from './privacy.ts';
import type { Stream } from './streams.ts';

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
 * Compiles a stream into the function that flattens its records. Paths are resolved once, here: walking them for every
 * record is six times slower. The result never throws on odd data, except `BadRecord` where there is no identity or time.
 */
export function createFlatten(stream: Stream, privacy: Privacy = DEFAULT_PRIVACY): Flatten {
  const readers = stream.columns.map((column) => compile(column, treatmentOf(column, privacy)));
  const treated = stream.columns
    .map((column, i) => ({ i, treatment: treatmentOf(column, privacy) }))
    .filter(({ treatment }) => treatment !== 'keep');
  const known = knownKeys(stream);
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const [event, timestamp, eventId] = [place('event'), place('timestamp'), place('event_id')];
  const [clickId, clickTime] = [place('click_id'), place('click_timestamp')];
  const isClick = stream.name === 'clicks';

  return (record) => {
    if (!isObject(record)) throw new BadRecord(`the record is not an object but ${nameOf(record)}`);
    const reading: Reading = { record, extra: createExtra(record, known), contradictions: [], misfits: [] };
    const values = readers.map((reader) => reader(reading));

    values[event] ??= stream.event;
    // A click's own time says the same; on leads and sales it is the time of another event and cannot stand in.
    if (isClick) values[timestamp] ??= values[clickTime] ?? null;
    const at = values[timestamp];
    if (typeof at !== 'number') throw new BadRecord('the record has no time: `timestamp` is missing or cannot be read');

    const given = values[eventId];
    const id = (isClick && values[clickId]) || given || identify(stream, values);
    if (id === undefined) {
      throw new BadRecord('the record has no identity: no id, and no link, click, customer or name to tell it by');
    }
    if (given && given !== id) reading.extra.put('eventId', record.eventId);
    values[eventId] = id;

    // Last, because the id of an event must not depend on the privacy settings of the day.
    for (const { i, treatment } of treated) values[i] = treat(values[i] ?? null, treatment);
    const { extra, contradictions, misfits } = reading;
    return { id: String(id), at, values, extra: extra.take(), contradictions, misfits };
  };
}

const treatmentOf = (column: Column, privacy: Privacy): Treatment =>
  column.personal ? privacy[column.personal] : 'keep';

interface Reading {
  record: JsonObject;
  extra: Extra;
  contradictions: string[];
  misfits: string[];
}

type Reader = (reading: Reading) => Value;

/** A column's reader takes the first origin that has a value and says where the others disagree. */
function compile(column: Column, treatment: Treatment): Reader {
  const origins = column.from.map(({ path, via }) => ({ path, via, get: compilePath(path) }));
  // The canonical column speaks for its alias: the pair is counted once and its losing value kept once.
  const reports = column.deprecated === undefined;

  return ({ record, extra, contradictions, misfits }) => {
    let found: Value = null;
    let misfit: string | undefined;
    for (const { path, via, get } of origins) {
      const raw = get(record);
      const value = coerce(column.kind, via && raw !== undefined && raw !== null ? via(raw) : raw);
      if (value === MISFIT) {
        misfit ??= path;
        if (treatment === 'keep') extra.put(path, raw);
      } else if (isNone(found)) {
        if (found === null || value !== null) found = value;
      } else if (reports && !via && !isNone(value) && value !== found) {
        contradictions.push(column.name);
        if (treatment === 'keep') extra.put(path, raw);
      }
    }
    if (misfit !== undefined && reports) misfits.push(column.name);
    return found;
  };
}

/** Records are at most two deep where columns look: `timestamp`, `click.id`. */
function compilePath(path: string): (record: JsonObject) => unknown {
  const [first = '', second] = path.split('.');
  if (second === undefined) return (record) => record[first];
  return (record) => {
    const parent = record[first];
    return isObject(parent) ? parent[second] : undefined;
  };
}

/** Which keys some column reads: at the top, and inside each object that columns look into. */
function knownKeys(stream: Stream): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = new Map<string, Set<string>>([['', new Set()]]);
  for (const { path } of stream.columns.flatMap((column) => column.from)) {
    const [first = '', second] = path.split('.');
    const parent = second === undefined ? '' : first;
    const inside = keys.get(parent) ?? new Set();
    keys.set(parent, inside.add(second ?? first));
  }
  return keys;
}

const isNone = (value: Value): boolean => value === null || value === '';

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const nameOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
