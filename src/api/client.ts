import { Cancelled, ConfigError, Fault, RetryLater, StopStream } from '../model/errors.ts';
import { type Instant, parseInstant } from '../model/instant.ts';
import { parseJson } from '../model/json.ts';
import { checkBaseUrl } from './base-url.ts';
import { readBody } from './body.ts';
import { cancelled, createDeadline, type Deadline, type Timeouts } from './cancel.ts';
import { type EventsQuery, toSearchParams } from './query.ts';
import { createRedact, type Redact } from './redact.ts';
import {
  beginningOf,
  describeBody,
  field,
  networkFault,
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
  /** The limit that the service names. For people: what it counts differs from service to service. */
  namedLimit?: string;
  /** From the question to the parsed answer, without any waiting for its turn. */
  tookMs: number;
}

/** One GET, one page or one typed error. No pacing and no second try: those belong to the layers around it. */
export interface Client {
  get(query: EventsQuery, signal?: AbortSignal): Promise<Page>;
}

export interface ClientOptions {
  baseUrl: string;
  apiKey: string;
  timeouts?: Partial<Timeouts>;
  maxBodyBytes?: number;
}

/** `answer.code` of the StopStream for a page over `maxBodyBytes`: a smaller limit may get its rows out. */
export const ANSWER_TOO_LARGE = 'answer_too_large';

const TIMEOUTS: Timeouts = { headersMs: 60_000, idleMs: 30_000, totalMs: 180_000 };
/** A page of 1000 is about 4.4 MB; metadata may hold a megabyte an event. Parsed, a page takes several times its size. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;

export function createClient({ baseUrl, apiKey, timeouts, maxBodyBytes = MAX_BODY_BYTES }: ClientOptions): Client {
  const base = checkBaseUrl(baseUrl);
  if ('fault' in base) throw new ConfigError(`baseUrl ${base.fault}`);
  // fetch would refuse such a key too, with an error message that quotes it.
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ConfigError('apiKey is empty or holds characters that no key has', {
      next: 'look for a blank or a line break in the environment variable that holds it',
    });
  }
  const redact = createRedact(apiKey);
  const headers = { authorization: `Bearer ${apiKey}`, accept: 'application/json', 'user-agent': 'tributary' };

  async function ask(url: URL, deadline: Deadline, progress: (bytes: number) => void): Promise<Page> {
    const asked = performance.now();
    const response = await fetch(url, { headers, redirect: 'manual', signal: deadline.signal });
    deadline.headersCame();
    const { status } = response;
    if (status >= 300 && status < 400) {
      response.body?.cancel().catch(() => {}); // Nobody reads it; whether the connection survives is of no interest.
      throw redirectFault({ status, headers: response.headers }, url, redact);
    }
    if (!response.ok) {
      // The status alone decides what happens next: a body that cannot be read to its end is as good as none.
      const body = await readBody(response, MAX_ERROR_BYTES, progress, deadline.signal).catch(() => ({ text: '' }));
      throw toFault({ status, headers: response.headers, text: body.text }, redact);
    }
    const { text, bytes, cut } = await readBody(response, maxBodyBytes, progress, deadline.signal);
    if (cut) throw tooLarge(status, maxBodyBytes);
    const records = readRecords({ status, headers: response.headers, text }, redact);
    const serverNow = parseInstant(response.headers.get('date'));
    const limit = response.headers.get('x-ratelimit-limit');
    const tookMs = performance.now() - asked;
    return { records, serverNow, bytes, tookMs, ...(limit !== null && { namedLimit: redact(limit, 20) }) };
  }

  return {
    async get(query, signal) {
      const url = new URL(`${base.value}/events?${toSearchParams(query)}`);
      if (signal?.aborted) throw cancelled(signal);
      const deadline = createDeadline({ ...TIMEOUTS, ...timeouts }, signal);
      let bytesRead = 0;
      try {
        return await ask(url, deadline, (bytes) => {
          bytesRead = bytes;
          deadline.chunkCame();
        });
      } catch (error) {
        // Whatever failed after the caller left failed because of it.
        if (signal?.aborted) throw error instanceof Cancelled ? error : cancelled(signal);
        if (error instanceof Fault) throw error;
        if (deadline.signal.aborted) throw deadline.signal.reason;
        throw networkFault(error, url, bytesRead) ?? error;
      } finally {
        deadline.close();
      }
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

/** The records of a 200, or the error that says what came instead of a list. */
function readRecords(reply: Reply, redact: Redact): readonly unknown[] {
  const value = parse(reply.text, redact);
  if (Array.isArray(value)) return value;
  if (field(value, 'error')) throw toFault(reply, redact);
  throw new StopStream(
    `the service answered ${reply.status} with JSON that is not a list: ${beginningOf(reply.text, redact)}`,
    {
      answer: { status: reply.status, code: 'not_a_list', message: beginningOf(reply.text, redact) },
      next: 'check baseUrl: this is no answer of the events listing',
    },
  );
}

function parse(text: string, redact: Redact): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own error quotes the body, and with it a key that the body may echo: it is not passed on.
    // An answer cut short and a maintenance page pass by themselves, so this may be tried again.
    throw new RetryLater(`the service answered 200 with ${describeBody(text, redact)}, which is not JSON`, {
      next: 'run it again later; if it stays, check baseUrl and any proxy between',
    });
  }
}
