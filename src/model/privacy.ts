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
const NAMES: Readonly<Record<Personal, readonly string[]>> = {
  linkPassword: ['password', 'linkpassword'],
  ip: ['ip', 'clickip'],
  customer: ['customer', 'customername', 'customeremail', 'customeravatar'],
};

/**
 * Keeps personal data out of the net under the columns as well: a link that comes as a list still holds its password.
 * Unknown fields of a customer are personal until a column says otherwise.
 */
export function createWithhold(privacy: Privacy): Withhold {
  const sorts = (Object.keys(NAMES) as Personal[]).filter((sort) => privacy[sort] !== 'keep');
  const names = new Set(sorts.flatMap((sort) => NAMES[sort]));
  const mention = new RegExp(`\\b(?:${[...names].join('|')})\\b`, 'i');
  const isHidden = (key: string): boolean => names.has(key.replace(/[_-]/g, '').toLowerCase());

  const scrub = (value: unknown, isText: (text: string) => unknown): unknown => {
    if (typeof value === 'string') return isText(value);
    if (Array.isArray(value)) return value.map((inner) => scrub(inner, isText));
    if (!isObject(value)) return value;
    const rest = bare();
    for (const key of Object.keys(value)) if (!isHidden(key)) rest[key] = scrub(value[key], isText);
    return rest;
  };
  const asItIs = (text: string): unknown => text;
  // A link or a click that came as text (`{"password":…}` encoded twice) cannot be taken apart.
  const unlessMentioned = (text: string): unknown => (mention.test(text) ? undefined : text);

  return (parent, key, value) => {
    if (names.size === 0) return value;
    if (isHidden(key) || (parent !== undefined && isHidden(parent))) return undefined;
    return scrub(value, parent === undefined && (key === 'link' || key === 'click') ? unlessMentioned : asItIs);
  };
}
