import { createHash } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { Value } from './coerce.ts';
import type { Personal } from './columns.ts';

/** What becomes of a personal value before it leaves the flattener: no sink, file or log ever sees the original. */
export type Treatment = 'keep' | 'drop' | 'hash' | 'truncate';
export type Privacy = Readonly<Record<Personal, Treatment>>;

/** Which treatments make sense for which data; the config is checked against this. */
export const TREATMENTS: Readonly<Record<Personal, readonly Treatment[]>> = {
  linkPassword: ['drop', 'keep', 'hash'],
  ip: ['keep', 'drop', 'hash', 'truncate'],
  customer: ['keep', 'drop', 'hash'],
};

export const DEFAULT_PRIVACY: Privacy = { linkPassword: 'drop', ip: 'keep', customer: 'keep' };

export function treat(value: Value, treatment: Treatment): Value {
  if (treatment === 'keep' || value === null || value === '') return value;
  if (treatment === 'drop') return null;
  const text = String(value);
  return treatment === 'hash' ? createHash('sha256').update(text).digest('hex') : truncateIp(text);
}

/** The network of an address: 203.0.113.0, 2001:db8:1::. What is no address is dropped rather than guessed at. */
function truncateIp(text: string): Value {
  if (isIPv4(text)) return text.replace(/\d+$/, '0');
  if (!isIPv6(text)) return null;
  const [head = '', tail] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail ? tail.split(':') : [];
  const groups = tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill('0'), ...right];
  return `${groups.slice(0, 3).join(':')}::`;
}
