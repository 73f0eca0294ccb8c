import type { Value } from './coerce.ts';
import type { Column } from './columns.ts';
import { BadRecord } from './errors.ts';
import { createExtra, isObject, type JsonObject, refuseTooDeep } from './extra.ts';
import { fitId, identify } from './identity.ts';
import type { Instant } from './instant.ts';
import { DEFAULT_PRIVACY, type Privacy, type Treatment, treat } from './privacy.ts';
import { createReadColumns, type Findings } from './readers.ts';
import type { Stream } from './streams.ts';
import { createRedact, createWithhold } from './withhold.ts';

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
 * Compiles a stream into the function that flattens its records. It never throws on odd data, except `BadRecord` where
 * there is no identity or time, or where the nesting has no end.
 */
export function createFlatten(stream: Stream, privacy: Privacy = DEFAULT_PRIVACY): Flatten {
  const { columns } = stream;
  const readColumns = createReadColumns(columns);
  const withhold = createWithhold(privacy);
  const redact = createRedact(privacy);
  const treated = columns
    .map((column, i) => ({ i, treatment: treatmentOf(column, privacy) }))
    .filter(({ treatment }) => treatment !== 'keep');
  const json = columns.flatMap((column, i) => (column.kind === 'json' ? [i] : []));
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const [event, timestamp, eventId] = [place('event'), place('timestamp'), place('event_id')];
  const [clickId, clickTime] = [place('click_id'), place('click_timestamp')];
  const isClick = stream.name === 'clicks';

  const flatten: Flatten = (record) => {
    if (!isObject(record)) throw new BadRecord(`the record is not an object but ${nameOf(record)}`);
    const findings: Findings = { extra: createExtra(withhold), contradictions: [], misfits: [] };
    const values = readColumns(record, findings);
    for (const i of json) refuseTooDeep(values[i]);

    values[event] ||= stream.event;
    // A click's own time says the same; on leads and sales it is the time of another event and cannot stand in.
    if (isClick) values[timestamp] ??= values[clickTime] ?? null;
    const at = values[timestamp];
    if (typeof at !== 'number') throw new BadRecord('the record has no time: `timestamp` is missing or cannot be read');

    const given = values[eventId];
    const whole = (isClick && values[clickId]) || given || identify(stream, values);
    if (!whole) {
      throw new BadRecord('the record has no identity: no id, and no link, click, customer or name to tell it by');
    }
    const id = fitId(String(whole));
    if (id !== whole) findings.misfits.push('event_id');
    if (given && given !== id) findings.extra.put(undefined, 'eventId', record.eventId);
    values[eventId] = id;

    // Last, because the id of an event must not depend on the privacy settings of the day.
    for (const { i, treatment } of treated) values[i] = treat(values[i] ?? null, treatment, privacy.salt);
    const { extra, contradictions, misfits } = findings;
    return { id, at, values, extra: extra.take(), contradictions, misfits };
  };

  return (record) => {
    try {
      return flatten(record);
    } catch (error) {
      // Recovery: the caller's. It gets what may be kept of the record, and need not know about privacy.
      if (error instanceof BadRecord) error.remains = redact(record);
      throw error;
    }
  };
}

const treatmentOf = (column: Column, privacy: Privacy): Treatment =>
  column.personal ? privacy[column.personal] : 'keep';

const nameOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
