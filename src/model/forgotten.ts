import { createHash } from 'node:crypto';
import type { Row } from './flatten.ts';
import { STREAMS, type Stream, type StreamName } from './streams.ts';

/** A customer or click that must be erased. Only a digest of the id is kept. */
export interface Forgotten {
  kind: 'customer' | 'click';
  digest: string;
}

export const digestOf = (id: string): string => createHash('sha256').update(id).digest('hex');

/** A customer's events lose the click as well, which leads to its address. Undeclared columns may hold anything. */
export function isEmptied(kind: Forgotten['kind'], stream: StreamName): (column: string) => boolean {
  const declared = new Set(STREAMS[stream].columns.map(({ name }) => name));
  const emptied = kind === 'customer' ? OF_CUSTOMER : OF_CLICK;
  return (column) => emptied.test(column) || !declared.has(column);
}

const OF_CUSTOMER = /^(?:customer_.*|metadata|click_id|click_ip|ip)$/;
const OF_CLICK = /^(?:click_ip|ip)$/;

/** Scrubs what the service still sends: drops forgotten clicks; keeps events of forgotten customers, without the person. */
export function createScrub(stream: Stream, forgotten: readonly Forgotten[]): (rows: readonly Row[]) => readonly Row[] {
  if (forgotten.length === 0) return (rows) => rows;
  const [customers, clicks] = [createIsForgotten(forgotten, 'customer'), createIsForgotten(forgotten, 'click')];
  const place = (name: string): number => stream.columns.findIndex((column) => column.name === name);
  const [customerId, clickId] = [place('customer_id'), place('click_id')];
  const isClicks = stream.name === 'clicks';
  const withEmptied = (kind: Forgotten['kind']): ((row: Row) => Row) => {
    const isColumnGone = isEmptied(kind, stream.name);
    const isGone = stream.columns.map(({ name }) => isColumnGone(name));
    return (row) => ({ ...row, values: row.values.map((value, i) => (isGone[i] ? null : value)), extra: null });
  };
  const [withoutCustomer, withoutClick] = [withEmptied('customer'), withEmptied('click')];

  return (rows) =>
    rows.flatMap((row) => {
      if (isClicks) return clicks(row.id) || clicks(row.values[clickId]) ? [] : [row];
      const kept = customers(row.values[customerId]) ? withoutCustomer(row) : row;
      return [clicks(row.values[clickId]) ? withoutClick(kept) : kept];
    });
}

/** Whether a record in quarantine mentions a forgotten customer or click anywhere. */
export function createMentions(forgotten: readonly Forgotten[]): (record: unknown) => boolean {
  if (forgotten.length === 0) return () => false;
  const isForgotten = createIsForgotten(forgotten);
  const mentions = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) {
      return Array.isArray(value) ? value.some(mentions) : Object.entries(value).some((entry) => entry.some(mentions));
    }
    const text = String(value);
    // In a record that came as text, ids are words.
    return isForgotten(text) || (/[^\w.-]/.test(text) && text.split(/[^\w.-]+/).some(isForgotten));
  };
  return mentions;
}

function createIsForgotten(forgotten: readonly Forgotten[], kind?: Forgotten['kind']): (id: unknown) => boolean {
  const digests = new Set(forgotten.filter((one) => kind === undefined || one.kind === kind).map((one) => one.digest));
  return (id) => digests.size > 0 && typeof id === 'string' && id !== '' && digests.has(digestOf(id));
}
