import type { Value } from '../model/columns.ts';
import type { Row } from '../model/flatten.ts';
import { STREAMS, type Stream, type StreamName } from '../model/streams.ts';
import { findParam, type Param } from './params.ts';
import { field } from './service-errors.ts';

/** What rows show about the filters of their request. */
export interface FilterCheck {
  rows: number;
  /** Filters that the service ignored, with a value that a row had instead. */
  broken: readonly { name: string; asked: string; got: string }[];
  /** Included values that no row had: mistyped, or unknown to the service. */
  unseen: readonly { name: string; value: string }[];
  /** Filters whose effect no column shows, so that they cannot be checked. */
  hidden: readonly string[];
}

/**
 * Compares rows with the filters that were sent. A service that does not know a parameter ignores it and shows everything; one that does
 * not know a value shows nothing. Neither gives an error. With `before`, a page adds to the result of earlier ones.
 */
export function checkFiltered(
  stream: Stream,
  filters: Readonly<Record<string, string>>,
  rows: readonly Row[],
  before?: FilterCheck,
): FilterCheck {
  const tests = Object.entries(filters).flatMap(([name, asked]) => testOf(stream, name, asked));
  const shown = tests.filter(({ positions }) => positions.length > 0);
  const broken = new Map(before?.broken.map((one) => [one.name, one]));
  const unseen = new Map(
    (before?.unseen ?? shown.flatMap(({ name, included }) => included.map((value) => ({ name, value })))).map((one) => [
      seenKey(one.name, one.value),
      one,
    ]),
  );
  for (const row of rows) {
    for (const { name, asked, positions, included, excluded } of shown) {
      if (!positions.some((i) => isShown(stream.columns[i]?.name, row.values[i] ?? null))) continue;
      const got = positions.flatMap((i) => textsOf(row.values[i] ?? null));
      const hit = included.find((value) => got.includes(value.toLowerCase()));
      if (hit !== undefined) unseen.delete(seenKey(name, hit));
      const isRight =
        excluded.length > 0 ? !excluded.some((value) => got.includes(value.toLowerCase())) : hit !== undefined;
      if (!isRight && !broken.has(name)) broken.set(name, { name, asked, got: got[0] ?? 'none' });
    }
  }
  return {
    rows: (before?.rows ?? 0) + rows.length,
    broken: [...broken.values()],
    unseen: [...unseen.values()],
    hidden: tests.filter(({ positions }) => positions.length === 0).map(({ name }) => name),
  };
}

/** Why the rows cannot be certified for these filters; undefined if there is no such sign. */
export function doubtOf({ rows, broken, unseen }: FilterCheck): string | undefined {
  const [first] = broken;
  if (first) {
    return `the service ignored the filter ${first.name}=${first.asked}: it showed an event with ${JSON.stringify(first.got)}`;
  }
  if (rows > 0 || unseen.length === 0) return undefined;
  const asked = unseen.map(({ name, value }) => `${name}=${value}`).join(', ');
  return `no event at all came for ${asked}: there are none, or the service does not know the value`;
}

interface Test {
  name: string;
  asked: string;
  /** The columns that show it, if any. */
  positions: readonly number[];
  included: readonly string[];
  excluded: readonly string[];
}

function testOf({ columns }: Stream, name: string, asked: string): Test[] {
  const param = findParam(name);
  if (!param) return [];
  const positions = (param.columns ?? [])
    .map((column) => columns.findIndex((one) => one.name === column))
    .filter((i) => i >= 0);
  const values = (param.advanced || name === 'tagIds' ? asked.split(',') : [asked]).map((value) => plain(param, value));
  const isExcluding = param.advanced === true && asked.startsWith('-');
  return [{ name, asked, positions, included: isExcluding ? [] : values, excluded: isExcluding ? values : [] }];
}

const plain = ({ advanced, prefix = '' }: Param, value: string): string =>
  value.slice((advanced && value.startsWith('-') ? 1 : 0) + (value.startsWith(prefix) ? prefix.length : 0));

/** A link without campaign, folder or partner really has none; a missing field of a click is unknown. */
const isShown = (column: string | undefined, value: Value): boolean =>
  column?.startsWith('link_') === true || (value !== null && value !== '');

/** Services differ in upper and lower case (`Mobile`, `mobile`); the value is the same. */
function textsOf(value: Value): string[] {
  if (value === null || value === '') return [];
  if (Array.isArray(value)) return value.flatMap((one: unknown) => textsOf(idOf(one)));
  return typeof value === 'object' ? [] : [String(value).toLowerCase()];
}

const idOf = (tag: unknown): string =>
  typeof tag === 'object' && tag !== null && 'id' in tag ? String(tag.id) : typeof tag === 'string' ? tag : '';

const seenKey = (name: string, value: string): string => `${name}=${value}`;

/** The event kind of a record of another stream than was asked for: caches and proxies may answer with rows of another question. */
export function foreignKind(stream: StreamName, record: unknown): string | undefined {
  const kind = field(record, 'event');
  if (typeof kind !== 'string') return undefined;
  const plainKind = kind.trim().toLowerCase().replace(/s$/, '');
  // An unknown kind is not that of another stream.
  return Object.values(STREAMS).some(({ event, name }) => event === plainKind && name !== stream)
    ? plainKind
    : undefined;
}
