import type { Kind } from '../../model/columns.ts';
import { ConfigError } from '../../model/errors.ts';
import { STREAMS, type Stream } from '../../model/streams.ts';
import { ShapeChanged } from '../sink.ts';
import { type Present, streamTable, type Table } from './table.ts';
import { formatOf, kindOfFormat, widening } from './types.ts';

/**
 * Rows travel in binary, which says nothing of types: an integer that is copied into a `numeric` column is stored as another
 * number, without a word. So the types are looked at first.
 */

/** Before a table is brought up to date: what neither fits nor can be widened was changed by somebody else. */
export function checkWidenable(table: Table, present: Present, evolved: ReadonlySet<string> = new Set()): void {
  const wider: Record<string, Kind> = {};
  const foreign: string[] = [];
  for (const { name, type } of table.columns) {
    const found = present.columns[name];
    if (found === undefined || fits(found, type) || widening(name, found, type) !== undefined) continue;
    const kind = kindOfFormat(found);
    if (evolved.has(name) && kind !== undefined && widening(name, formatOf(type), found) !== undefined)
      wider[name] = kind;
    else foreign.push(`${name} is ${found} and must be ${formatOf(type)}`);
  }
  if (foreign.length > 0) {
    throw new ConfigError(`table ${table.name} has columns of another type: ${foreign.join('; ')}`, {
      next: 'give them their types back (alter table … alter column … type …), or rename them; then run again',
    });
  }
  if (Object.keys(wider).length > 0) throw new ShapeChanged(table.name, wider);
}

/** Postgres cannot turn a table into partitions or back; only its rows can be carried over. */
export function checkLayout(schema: string, { name, partitionedBy }: Table, { partitioned }: Present): void {
  const isWanted = partitionedBy !== undefined;
  if (isWanted === partitioned) return;
  const [is, says] = isWanted ? ['in one piece', 'month'] : ['in monthly partitions', 'none'];
  throw new ConfigError(`table ${schema}.${name} is ${is}, and the config says partition: ${says}`, {
    kept: 'nothing was changed',
    next:
      `set partition: ${isWanted ? 'none' : 'month'} to go on as before; to change over, give the sink another name and another ` +
      `schema, sync, and drop ${schema} when the new tables are complete (docs/warehouse.md, Partitions)`,
  });
}

/** While rows are written, under a lock that keeps the types as they are: anything that differs came since the table was prepared. */
export function checkShape(stream: Stream, present: Present): void {
  const table = streamTable(stream);
  if (table.columns.every(({ name, type }) => fits(present.columns[name] ?? '', type))) return;
  checkWidenable(table, present, evolvedNames(stream));
  throw new ShapeChanged(table.name, {});
}

/** The columns of a stream that nobody declared. */
export function evolvedNames(stream: Stream): Set<string> {
  const declared = new Set(STREAMS[stream.name].columns.map(({ name }) => name));
  return new Set(stream.columns.map(({ name }) => name).filter((name) => !declared.has(name)));
}

/** `varchar` looks like `text` in binary. */
const fits = (found: string, type: string): boolean =>
  found === formatOf(type) || (type === 'text' && found.startsWith('character varying'));
