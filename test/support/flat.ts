import type { Value } from '../../src/model/columns.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import type { Privacy } from '../../src/model/privacy.ts';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';

/** A row with its values by column name. */
export function flat(stream: StreamName, record: unknown, privacy?: Privacy) {
  const { columns } = STREAMS[stream];
  const row = createFlatten(STREAMS[stream], privacy)(record);
  return {
    ...row,
    get(name: string): Value {
      const place = columns.findIndex((column) => column.name === name);
      if (place < 0) throw new Error(`${stream} has no column ${name}`);
      return row.values[place] ?? null;
    },
  };
}

/** A record with `value` at a path of one or two levels, plus the fields that every record of the stream has. */
export function recordWith(
  stream: StreamName,
  ...fields: readonly (readonly [path: string, value: unknown])[]
): object {
  const record: Record<string, unknown> = { timestamp: '2026-11-14T10:00:00.000Z' };
  if (stream !== 'clicks') record.eventId = 'event_1';
  else if (!fields.some(([path]) => path === 'click_id')) record.click = { id: 'click_1' };
  for (const [path, value] of fields) {
    const [first = '', second] = path.split('.');
    record[first] = second === undefined ? value : { ...(record[first] as object), [second]: value };
  }
  return record;
}

/** The same text for equal values, whatever the order of their keys; safe for BigInt and a key called `__proto__`. */
export function stable(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return `[${value.map(stable).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const entries = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}:${stable(inner)}`);
  return `{${entries.sort().join()}}`;
}
