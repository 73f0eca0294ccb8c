import { createHmac } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { Personal, Value } from './columns.ts';
import { bare, isObject, type Withhold } from './json.ts';

/** The treatment of a personal value before it leaves the flattener: no sink, file or log sees the original. */
export type Treatment = 'keep' | 'drop' | 'hash' | 'truncate';

export interface Privacy extends Readonly<Record<Personal, Treatment>> {
  readonly salt?: string | undefined;
}

/** Which treatments make sense for which data; the config is checked against this. */
export const TREATMENTS: Readonly<Record<Personal, readonly Treatment[]>> = {
  linkPassword: ['drop', 'keep', 'hash'],
  ip: ['keep', 'drop', 'hash', 'truncate'],
  customer: ['keep', 'drop', 'hash'],
};

export const DEFAULT_PRIVACY: Privacy = { linkPassword: 'drop', ip: 'keep', customer: 'keep' };

/** Shorter ones could be found by brute force. */
export const SHORTEST_SALT = 16;

export const hashesAnything = (privacy: Privacy): boolean => SORTS.some((sort) => privacy[sort] === 'hash');

const SORTS = Object.keys(TREATMENTS) as Personal[];

export function treat(value: Value, treatment: Treatment, salt?: string): Value {
  if (treatment === 'keep' || value === null || value === '') return value;
  if (treatment === 'drop') return null;
  const text = String(value);
  return treatment === 'hash' ? keyedHash(text, salt) : truncateIp(text);
}

/** Keyed, because a plain hash is undone by hashing all candidates: there are only four billion IPv4 addresses. */
function keyedHash(text: string, salt: string | undefined): string {
  if (!salt) throw new Error('hashing personal data needs a salt');
  return createHmac('sha256', salt).update(text).digest('hex');
}

/** 203.0.113.0, 2001:db8:1::. A mapped one (::ffff:203.0.113.9) is IPv4. A text that is no address is dropped. */
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

/** The eight numbers of a valid IPv6 address; a URL writes it without dots. */
function groupsOf(text: string): number[] {
  const { hostname } = new URL(`http://[${text.replace(/%.*$/, '')}]`);
  const [left = [], right = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').flatMap((group) => (group === '' ? [] : Number.parseInt(group, 16))));
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** Keeps personal data out of `_extra` and of records in quarantine. */

/** Names that fields of each sort may have where no column reads them. */
const NAMES: Readonly<Record<Personal, string>> = {
  linkPassword: '[\\w-]*(?:password|passwd|passphrase)[\\w-]*',
  ip: '(?:(?:click|client|remote|visitor|user)[_-]?)?ip(?:[_-]?(?:address|addr|v?[46]))?',
  customer: 'customer(?:[_-]?(?:name|email|avatar))?|e-?mail(?:[_-]?address)?',
};

function rulesOf(privacy: Privacy) {
  const sorts = (Object.keys(NAMES) as Personal[]).filter((sort) => privacy[sort] !== 'keep');
  const names = sorts.map((sort) => NAMES[sort]).join('|');
  const key = new RegExp(`^(?:${names})$`, 'i');
  const inText = new RegExp(`\\\\*["'](?:${names})\\\\*["']\\s*:`, 'i');
  const mention = new RegExp(`\\b(?:${names})\\b`, 'i');
  return {
    hidesNothing: sorts.length === 0,
    hidesKey: (name: string) => key.test(name),
    /** Whether a text holds JSON with such a key, however often it was encoded. */
    hidesText: (text: string) => inText.test(text),
    /** Whether a text mentions such a key at all: for text in place of a link or click object. */
    isMentionedIn: (text: string) => mention.test(text),
  };
}

const isPart = (key: string): boolean => key === 'link' || key === 'click';

/** `hasPassword: true` and `password: null` reveal nothing. */
const revealsNothing = (value: unknown): boolean => value === null || typeof value === 'boolean';

/** A link that comes as a list still holds its password. Unknown fields of a customer are personal. */
export function createWithhold(privacy: Privacy): Withhold {
  const rules = rulesOf(privacy);
  if (rules.hidesNothing) return (_parent, _key, value) => value;

  const scrub = (value: unknown, hides: (text: string) => boolean): unknown => {
    if (typeof value === 'string') return hides(value) ? undefined : value;
    if (Array.isArray(value)) return value.map((inner) => scrub(inner, hides));
    if (!isObject(value)) return value;
    const rest = bare();
    for (const key of Object.keys(value)) {
      if (!rules.hidesKey(key) || revealsNothing(value[key])) rest[key] = scrub(value[key], hides);
    }
    return rest;
  };

  return (parent, key, value) => {
    if (parent !== undefined && rules.hidesKey(parent)) return undefined;
    if (rules.hidesKey(key) && !revealsNothing(value)) return undefined;
    return scrub(value, parent === undefined && isPart(key) ? rules.isMentionedIn : rules.hidesText);
  };
}

/** Deep enough for real data; deeper nesting would overflow the stack in JSON.stringify. */
const DEEPEST = 60;

const PASSWORD_IN_TEXT = /pass(?:word|wd|phrase)[\\"'\s]*[:=]/i;

const LEFT_OUT = '(left out)';

/** Fields of a customer that the tables always keep. */
const OF_ANY_CUSTOMER: readonly string[] = ['id', 'externalId', 'country', 'createdAt'];

/** The record's shape is odd, so personal data is searched for everywhere. Values that tables hash or truncate are removed here. */
export function createRedact(privacy: Privacy): (record: unknown) => unknown {
  const rules = rulesOf({ ...privacy, linkPassword: DEFAULT_PRIVACY.linkPassword });

  const redact = (value: unknown, levels: number, isWhole = false): unknown => {
    if (typeof value === 'string') return hides(value, isWhole) ? '(left out: it names what is private)' : value;
    if (typeof value !== 'object' || value === null) return value;
    if (levels === 0) return '(left out: too deep)';
    if (Array.isArray(value)) return value.map((inner) => redact(inner, levels - 1, isWhole));
    const rest = bare();
    for (const [key, inner] of Object.entries(value)) {
      if (!rules.hidesKey(key) || revealsNothing(inner)) rest[key] = redact(inner, levels - 1, isPart(key));
      else rest[key] = key.toLowerCase() === 'customer' ? withoutPerson(inner) : LEFT_OUT;
    }
    return rest;
  };
  const hides = (text: string, isWhole: boolean): boolean =>
    isWhole ? rules.isMentionedIn(text) : rules.hidesText(text) || PASSWORD_IN_TEXT.test(text);
  return (record) => redact(record, DEEPEST, true);
}

/** A removed value counts as unknown, not as the text that replaced it. */
export function withoutLeftOut(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((inner) => !isLeftOut(inner)).map(withoutLeftOut);
  if (!isObject(value)) return value;
  const rest = bare();
  for (const [key, inner] of Object.entries(value)) if (!isLeftOut(inner)) rest[key] = withoutLeftOut(inner);
  return rest;
}

const isLeftOut = (value: unknown): boolean => typeof value === 'string' && /^\(left out(?:: [a-z ]+)?\)$/.test(value);

function withoutPerson(customer: unknown): unknown {
  if (Array.isArray(customer)) return customer.map((one) => (isObject(one) ? withoutPerson(one) : LEFT_OUT));
  if (!isObject(customer)) return LEFT_OUT;
  const rest = bare();
  for (const [key, value] of Object.entries(customer)) {
    const isKept = OF_ANY_CUSTOMER.includes(key) && (typeof value !== 'object' || value === null);
    rest[key] = isKept || revealsNothing(value) ? value : LEFT_OUT;
  }
  return rest;
}
