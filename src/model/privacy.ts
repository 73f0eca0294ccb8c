import { createHash } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { Value } from './coerce.ts';
import type { Personal } from './columns.ts';
import { bare, isObject, type Withhold } from './extra.ts';

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

/** What the fields of each sort may be called where no column finds them. */
const NAMES: Readonly<Record<Personal, string>> = {
  linkPassword: '(?:link[_-]?)?password',
  ip: '(?:click[_-]?)?ip',
  customer: 'customer(?:[_-]?(?:name|email|avatar))?',
};

/**
 * Keeps personal data out of the net under the columns as well: a link that comes as a list still holds its password.
 * Unknown fields of a customer are personal until a column says otherwise.
 */
export function createWithhold(privacy: Privacy): Withhold {
  const sorts = (Object.keys(NAMES) as Personal[]).filter((sort) => privacy[sort] !== 'keep');
  if (sorts.length === 0) return (_parent, _key, value) => value;
  const names = sorts.map((sort) => NAMES[sort]).join('|');
  const hiddenKey = new RegExp(`^(?:${names})$`, 'i');
  // JSON inside a text, however often it was encoded, cannot be taken apart; nor can a link or a click that came as text.
  const hiddenInText = new RegExp(`\\\\*["'](?:${names})\\\\*["']\\s*:`, 'i');
  const mentioned = new RegExp(`\\b(?:${names})\\b`, 'i');

  const scrub = (value: unknown, hidden: RegExp): unknown => {
    if (typeof value === 'string') return hidden.test(value) ? undefined : value;
    if (Array.isArray(value)) return value.map((inner) => scrub(inner, hidden));
    if (!isObject(value)) return value;
    const rest = bare();
    for (const key of Object.keys(value)) if (!hiddenKey.test(key)) rest[key] = scrub(value[key], hidden);
    return rest;
  };

  return (parent, key, value) => {
    if (hiddenKey.test(key) || (parent !== undefined && hiddenKey.test(parent))) return undefined;
    return scrub(value, parent === undefined && (key === 'link' || key === 'click') ? mentioned : hiddenInText);
  };
}
