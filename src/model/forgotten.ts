import { createHash } from 'node:crypto';
import type { Row } from './flatten.ts';
import type { Stream } from './streams.ts';

/** Whom or what a person asked to have erased. The id itself is not kept, only its digest. */
export interface Forgotten {
  kind: 'customer' | 'click';
  digest: string;
}

export const digestOf = (id: string): string => createHash('sha256').update(id).digest('hex');

/** The columns of an event that go when its customer is forgotten: who they are, where they were, what was said of them. */
export const OF_CUSTOMER = (column: string): boolean =>
  column.startsWith('customer_') || ['metadata', 'click_ip', 'ip'].includes(column);

/** The columns of a lead or sale that go when its click is forgotten. */
export const OF_CLICK = (column: string): boolean => ['click_ip', 'ip'].includes(column);

/**
 * Keeps what was forgotten forgotten: the service still has it, and the next sweep would bring it back. A forgotten click is
 * left out; events of a forgotten customer stay, without anything that says who it was.
 */
export function createScrub(stream: Stream, forgotten: readonly Forgotten[]): (rows: readonly Row[]) => Row[] {
  if (forgotten.length === 0) return (rows) => [...rows];
  const digests = (kind: Forgotten['kind']): Set<string> =>
    new Set(forgotten.filter((one) => one.kind === kind).map((one) => one.digest));
  const [customers, clicks] = [digests('customer'), digests('click')];
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const [customerId, clickId] = [place('customer_id'), place('click_id')];
  const has = (set: Set<string>, value: unknown): boolean => typeof value === 'string' && set.has(digestOf(value));
  const without = (row: Row, isGone: (column: string) => boolean): Row => ({
    ...row,
    values: row.values.map((value, i) => (isGone(stream.columns[i]?.name ?? '') ? null : value)),
    extra: null,
  });

  return (rows) =>
    rows.flatMap((row) => {
      const isClickGone = has(clicks, row.values[clickId]);
      if (isClickGone && stream.name === 'clicks') return [];
      const kept = has(customers, row.values[customerId]) ? without(row, OF_CUSTOMER) : row;
      return [isClickGone ? without(kept, OF_CLICK) : kept];
    });
}
