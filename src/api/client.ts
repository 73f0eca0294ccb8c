import { Cancelled, ConfigError, Fault, RetryLater, StopStream } from '../model/errors.ts';
import { type Instant, parseInstant } from '../model/instant.ts';
import { parseJson } from '../model/json.ts';
import { type Held, type Memory, processMemory } from '../model/memory.ts';
import type { StreamName } from '../model/streams.ts';
import { decode, type Progress, readBody, send } from './answer.ts';
import { checkBaseUrl } from './base-url.ts';
import { CUT, cancelled, createDeadline, type Deadline, type Timeouts } from './cancel.ts';
import { checkFilters, checkParams } from './filters.ts';
import { createRepeatedLinks } from './repeated-links.ts';
import {
  beginningOf,
  createRedact,
  describeBody,
  field,
  forLinks,
  networkFault,
  type Redact,
  type Reply,
  redirectFault,
  toFault,
} from './service-errors.ts';

export interface Page {
  records: readonly unknown[];
  /** The service's own clock when it answered, from the Date header. */
  serverNow: Instant | undefined;
  /** Size of the answer after decompression. */
  bytes: number;
  /** The limit that the service reports. For people only: its unit differs from service to service. */
  namedLimit?: string;
  /** From sending the request to the parsed answer, without waiting for the limiter. */
  tookMs: number;
}

/** One GET gives one page or one typed error. Pacing and retries belong to the layers around it. */
export interface Client {
  get(query: Query, signal?: AbortSignal): Promise<Page>;
}

export interface ClientOptions {
  baseUrl: string;
  apiKey: string;
  timeouts?: Partial<Timeouts>;
  maxBodyBytes?: number;
  /** The memory that all pages of the process share. */
  memory?: Memory;
}

/** `answer.code` of the StopStream for a page over `maxBodyBytes`: a smaller limit may make its rows readable. */
export const ANSWER_TOO_LARGE = 'answer_too_large';

const TIMEOUTS: Timeouts = { connectMs: 10_000, headersMs: 60_000, idleMs: 30_000, totalMs: 180_000 };
/** A page of 1000 is about 4.4 MB; metadata may hold a megabyte an event. Parsed, a page takes several times its size. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 1024 * 1024;
/** Copies of a body that exist until it is parsed: as received, its bytes, its text and the records. */
const FORMS = 4;
/** Memory reserved for the first page, before the size of pages is known. */
const FIRST_BYTES = 256 * 1024;

export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey, timeouts, maxBodyBytes = MAX_BODY_BYTES, memory = processMemory } = options;
  const base = checkBaseUrl(baseUrl);
  if ('fault' in base) throw new ConfigError(`baseUrl ${base.fault}`);
  // No header can hold such a key.
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ConfigError('apiKey is empty or contains characters that a key cannot have', {
      next: 'check the environment variable that holds it for a space or a line break',
    });
  }
  const redact = createRedact(apiKey);
  const headers = { authorization: `Bearer ${apiKey}`, accept: 'application/json', 'user-agent': 'tributary' };
  const parseRepeated = createRepeatedLinks();
  let expected = FIRST_BYTES;

  async function ask(url: URL, deadline: Deadline, progress: Progress): Promise<Page> {
    const asked = performance.now();
    const message = await send(url, headers, deadline);
    deadline.onHeaders();
    const { statusCode: status = 0 } = message;
    const answered = { status, headers: { get: (name: string) => message.headersDistinct[name]?.join(', ') ?? null } };
    if (status >= 300 && status < 400) {
      message.destroy(); // Nobody reads it; whether the connection survives does not matter.
      throw redirectFault(answered, url, redact);
    }
    if (status < 200 || status > 299) {
      // The status alone decides what happens next: a body that cannot be read completely is ignored.
      const limits = { maxBytes: MAX_ERROR_BYTES, likelyBytes: MAX_ERROR_BYTES };
      const body = await readBody(message, limits, progress).catch(() => ({ content: Buffer.alloc(0) }));
      throw toFault({ ...answered, text: decode(body.content) }, redact);
    }
    const limits = { maxBytes: maxBodyBytes, likelyBytes: expected * 1.25 };
    const { content, cut } = await readBody(message, limits, progress);
    if (cut) throw tooLarge(status, maxBodyBytes);
    const records = parseRepeated(content) ?? readRecords({ ...answered, text: decode(content) }, redact);
    const serverNow = parseInstant(answered.headers.get('date'));
    const limit = answered.headers.get('x-ratelimit-limit');
    const tookMs = performance.now() - asked;
    return {
      records,
      serverNow,
      bytes: content.length,
      tookMs,
      ...(limit !== null && { namedLimit: redact(limit, 20) }),
    };
  }

  async function get(url: URL, held: Held, signal: AbortSignal | undefined): Promise<Page> {
    if (signal?.aborted) throw cancelled(signal);
    const deadline = createDeadline({ ...TIMEOUTS, ...timeouts }, signal);
    let bytesRead = 0;
    try {
      return await ask(url, deadline, async (received, unpacked) => {
        bytesRead = received;
        deadline.onChunk();
        // Backpressure: nothing is read until there is memory.
        const more = held.grow(unpacked * FORMS);
        if (more) await deadline.pauseFor(more);
      });
    } catch (error) {
      // After the caller aborted, any failure is due to that.
      if (signal?.aborted) throw error instanceof Cancelled ? error : cancelled(signal);
      if (error instanceof Fault) throw error;
      if (deadline.signal.aborted) throw deadline.signal.reason;
      throw networkFault(error, url, bytesRead) ?? error;
    } finally {
      deadline.close();
    }
  }

  return {
    async get(query, signal) {
      const url = new URL(`${base.value}${pathOf(query)}`);
      const held = memory.hold(expected * FORMS, (memoryHeld) => get(url, memoryHeld, signal), { signal });
      const page = await held.catch((error: unknown) => {
        throw query.stream === 'links' ? forLinks(error) : error;
      });
      expected = page.bytes;
      return page;
    },
  };
}

function tooLarge(status: number, maxBytes: number): StopStream {
  const message = `the page is larger than ${Math.floor(maxBytes / 1024)} KiB`;
  return new StopStream(`the service answered ${status}, but ${message}; the rest was not read`, {
    answer: { status, code: ANSWER_TOO_LARGE, message },
    next: 'ask for fewer events a page',
  });
}

/** The records of a 200, or an error that describes what came instead of a list. */
function readRecords(reply: Reply, redact: Redact): readonly unknown[] {
  const value = parse(reply.text, redact);
  if (Array.isArray(value)) return value;
  if (field(value, 'error')) throw toFault(reply, redact);
  throw new StopStream(
    `the service answered ${reply.status} with JSON that is not a list: ${beginningOf(reply.text, redact)}`,
    {
      answer: { status: reply.status, code: 'not_a_list', message: beginningOf(reply.text, redact) },
      next: 'check baseUrl: this is not an answer of the events API',
    },
  );
}

function parse(text: string, redact: Redact): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own error quotes the body, and with it a key that the body may echo: it is not passed on.
    // Truncated answers and maintenance pages are temporary, so this may be retried.
    throw new RetryLater(`the service answered 200 with ${describeBody(text, redact)}, which is not JSON`, {
      // A proxy may truncate a body that is too large for it: a smaller page is tried.
      answer: { ...CUT, status: 200 },
      next: 'run it again later; if the problem persists, check baseUrl and any proxy in between',
    });
  }
}

export type Query = EventsQuery | LinksQuery;

const pathOf = (query: Query): string =>
  query.stream === 'links' ? `/links?${toLinksParams(query)}` : `/events?${toSearchParams(query)}`;

/** One request for one page of all links. The contract names these parameters for every list. */
export interface LinksQuery {
  stream: 'links';
  page: number;
  pageSize: number;
  /** Absent: in the service's own order. */
  sortOrder?: 'asc' | 'desc';
}

const toLinksParams = ({ page, pageSize, sortOrder }: LinksQuery): URLSearchParams =>
  new URLSearchParams({
    page: String(page),
    pageSize: String(pageSize),
    ...(sortOrder && { sortBy: 'createdAt', sortOrder }),
  });

/** One request for one page of events. */
export interface EventsQuery {
  stream: StreamName;
  start: Instant;
  end: Instant;
  sortOrder: 'asc' | 'desc';
  page: number;
  limit: number;
  filters: Readonly<Record<string, string>>;
}

/**
 * The query as it is sent. It relies on none of the service's defaults, because deployed services differ in them (an `end` without `start`
 * is ignored, the default interval is 24 h or 30 d). A query that cannot be right is refused here, before it costs a request or returns the
 * wrong events.
 */
export function toSearchParams(query: EventsQuery): URLSearchParams {
  const fixed = checkParams({
    event: query.stream,
    // Rounded outwards to whole milliseconds: an extra row is dropped by its key, a missing row would be lost.
    start: isoMillis(Math.floor(query.start)),
    end: isoMillis(Math.ceil(query.end)),
    timezone: 'UTC',
    sortBy: 'timestamp',
    sortOrder: query.sortOrder,
    page: query.page,
    limit: query.limit,
  });
  const filters = checkFilters(query.stream, query.filters);
  const faults = [...fixed.faults, ...filters.faults].map((fault) => fault.message);
  // Services swap a start after the end instead of refusing it, and return events of another range.
  if (query.start > query.end) faults.push('start is after end');
  if (faults.length > 0) throw new ConfigError(`this query for ${query.stream} cannot be sent:`, { faults });
  return new URLSearchParams({ ...fixed.query, ...filters.query });
}

/** Undefined outside the years 0 to 9999: the check above then reports it as missing. */
function isoMillis(ms: number): string | undefined {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 0 && year <= 9999 ? date.toISOString() : undefined;
}
