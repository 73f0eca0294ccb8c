import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject, parseJson, share } from '../model/json.ts';
import { decode } from './answer.ts';

/**
 * The service joins links at read time: on a page, all events of a link repeat the same text, which is most of the page. It is parsed once
 * and its records share the object, so that later stages process it only once, too.
 *
 * In the bytes of a page, each known link is replaced by a mark, and in the parsed page each mark by the link. A quote before a colon ends
 * a name, so what follows in valid JSON is a value, and means the same anywhere. If not all marks come back as links of records, or the
 * rest is not JSON, the page is parsed without this.
 */
const NAME = Buffer.from('"link":{');
/** New in each process: anyone who knew it could put another's link into a record. */
const MARK = `link:${randomUUID()}:`;

/** The length of a link's beginning that identifies it: it includes the id. */
const BEGINNING = 64;
/** Longer than any mark. */
const SHORTEST = 128;
const LONGEST = 16 * 1024;
/** The size limit of all known links. */
const MOST_BYTES = 1024 * 1024;
/** On smaller pages links hardly repeat. */
const LEAST_BYTES = 32 * 1024;
/** Pages that skip the search after one with less than one repeated link per `NEW_ONES` new ones, where it costs what it saves. */
const PAUSE = 15;
const NEW_ONES = 4;

interface Known {
  bytes: Buffer;
  /** Set from its second appearance on; null if it is not JSON. */
  link?: JsonObject | null;
}

/** Parses the records of a page whose links repeat; undefined if the page must be parsed as it is. */
export function createRepeatedLinks(): (page: Buffer) => unknown[] | undefined {
  const known = new Map<number, Known>();
  let knownBytes = 0;
  let pause = 0;

  const forget = (): void => {
    known.clear();
    knownBytes = 0;
  };

  /** Returns where the link ends. */
  const remember = (key: number, page: Buffer, start: number): number => {
    const end = endOfObject(page, start);
    if (end < start + SHORTEST) return start;
    if (knownBytes > MOST_BYTES) forget();
    known.set(key, { bytes: Buffer.from(page.subarray(start, end)) });
    knownBytes += end - start;
    return end;
  };

  /** The page with marks, the links that they stand for, and the number of new links. */
  const shorten = (page: Buffer): { bytes: Buffer; links: JsonObject[]; added: number } => {
    const bytes = Buffer.allocUnsafeSlow(page.length);
    const links: JsonObject[] = [];
    let [used, done, added] = [0, 0, 0];
    for (let at = page.indexOf(NAME); at >= 0; ) {
      const start = at + NAME.length - 1;
      const key = keyOf(page, start);
      const one = known.get(key);
      const link = one && isAt(page, start, one.bytes) ? linkOf(one) : null;
      let end = start;
      if (one && link) {
        end += one.bytes.length;
        used += page.copy(bytes, used, done, start);
        used += bytes.write(`"${MARK}${links.push(link) - 1}"`, used, 'latin1');
        done = end;
      } else {
        end = remember(key, page, start);
        added++;
      }
      at = page.indexOf(NAME, end);
    }
    used += page.copy(bytes, used, done);
    return { bytes: bytes.subarray(0, used), links, added };
  };

  return (page) => {
    // A stream that is up to date has small pages and needs no memory of links.
    if (page.length < LEAST_BYTES) forget();
    if (page.length < LEAST_BYTES || pause-- > 0) return undefined;
    const { bytes, links, added } = shorten(page);
    const records = links.length > 0 ? restored(tryParse(decode(bytes)), links) : undefined;
    pause = records && links.length * NEW_ONES >= added ? 0 : PAUSE;
    return records;
  };
}

/** Undefined if a mark is not where the link of a record belongs. */
function restored(page: unknown, links: readonly JsonObject[]): unknown[] | undefined {
  if (!Array.isArray(page)) return undefined;
  let count = 0;
  for (const record of page) {
    if (!isObject(record) || typeof record.link !== 'string' || !record.link.startsWith(MARK)) continue;
    record.link = links[Number(record.link.slice(MARK.length))];
    count++;
  }
  return count === links.length ? page : undefined;
}

function linkOf(known: Known): JsonObject | null {
  if (known.link === undefined) {
    const link = tryParse(decode(known.bytes));
    known.link = isObject(link) ? share(link) : null;
  }
  return known.link;
}

function tryParse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // Recovery: the whole page is parsed as it is; if it is not JSON, that parser reports it.
    return undefined;
  }
}

const isAt = (page: Buffer, start: number, bytes: Buffer): boolean =>
  start + bytes.length <= page.length && page.compare(bytes, 0, bytes.length, start, start + bytes.length) === 0;

function keyOf(page: Buffer, start: number): number {
  let key = 0;
  for (let i = start; i < start + BEGINNING; i++) key = Math.imul(key ^ (page[i] ?? 0), 16_777_619);
  return key;
}

const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x7b, 0x7d];

/** The position after the object that begins at `start`; -1 if it does not end within `LONGEST` bytes. */
function endOfObject(page: Buffer, start: number): number {
  const most = Math.min(page.length, start + LONGEST);
  let depth = 0;
  let isInText = false;
  for (let i = start; i < most; i++) {
    const byte = page[i];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) i += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPEN) depth++;
    else if (byte === CLOSE && --depth === 0) return i + 1;
  }
  return -1;
}
