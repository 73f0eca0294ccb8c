import { createHmac } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { Value } from './coerce.ts';
import type { Personal } from './columns.ts';

/** What becomes of a personal value before it leaves the flattener: no sink, file or log ever sees the original. */
export type Treatment = 'keep' | 'drop' | 'hash' | 'truncate';

export interface Privacy extends Readonly<Record<Personal, Treatment>> {
  /** The secret that hashes are keyed with; whoever hashes needs one. */
  readonly salt?: string | undefined;
}

/** Which treatments make sense for which data; the config is checked against this. */
export const TREATMENTS: Readonly<Record<Personal, readonly Treatment[]>> = {
  linkPassword: ['drop', 'keep', 'hash'],
  ip: ['keep', 'drop', 'hash', 'truncate'],
  customer: ['keep', 'drop', 'hash'],
};

export const DEFAULT_PRIVACY: Privacy = { linkPassword: 'drop', ip: 'keep', customer: 'keep' };

/** Shorter ones could be found by trying them all. */
export const SHORTEST_SALT = 16;

export const hashesAnything = (privacy: Privacy): boolean => SORTS.some((sort) => privacy[sort] === 'hash');

const SORTS = Object.keys(TREATMENTS) as Personal[];

export function treat(value: Value, treatment: Treatment, salt?: string): Value {
  if (treatment === 'keep' || value === null || value === '') return value;
  if (treatment === 'drop') return null;
  const text = String(value);
  return treatment === 'hash' ? keyedHash(text, salt) : truncateIp(text);
}

/** A plain hash of an address or a password is undone by hashing all of them: there are only four billion IPv4 addresses. */
function keyedHash(text: string, salt: string | undefined): string {
  if (!salt) throw new Error('hashing personal data needs a salt');
  return createHmac('sha256', salt).update(text).digest('hex');
}

/**
 * The network of an address: 203.0.113.0, 2001:db8:1::. An IPv4 address in IPv6 dress (::ffff:203.0.113.9) is an IPv4
 * address. What is no address is dropped rather than guessed at.
 */
function truncateIp(text: string): Value {
  if (isIPv4(text)) return text.replace(/\d+$/, '0');
  if (!isIPv6(text)) return null;
  const groups = groupsOf(text);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    const [high = 0, low = 0] = groups.slice(6);
    return `${high >> 8}.${high & 255}.${low >> 8}.0`;
  }
  const network = groups.slice(0, 3);
  while (network.at(-1) === 0) network.pop();
  return `${network.map((group) => group.toString(16)).join(':')}::`;
}

/** The eight numbers of a valid IPv6 address. */
function groupsOf(text: string): number[] {
  const [left = [], tail] = text.replace(/%.*$/, '').split('::').map(parseGroups);
  return tail === undefined ? left : [...left, ...Array<number>(8 - left.length - tail.length).fill(0), ...tail];
}

function parseGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
