import { Fault, RetryLater, type ServiceAnswer, StopStream } from '../model/errors.ts';
import { type Instant, parseInstant } from '../model/instant.ts';
import { meaningOf } from '../model/io-errors.ts';
import { CUT } from './cancel.ts';

/** 403 has three meanings under one code. Only the service's message distinguishes them. */
type ForbiddenMeaning = 'usage' | 'plan' | 'permission';

const FORBIDDEN_NEXT: Readonly<Record<ForbiddenMeaning, string>> = {
  usage: 'the monthly usage is exceeded: it clears by itself with the next billing period, or raise the limit',
  plan: 'the workspace plan is too low: GET /events needs the Business plan or higher',
  permission: 'give this key permission to read analytics, or use a key that has it',
};

const NOT_FOUND = 'check baseUrl, and the ids in the filters';
const CHECK_QUERY = 'check the filters and dates of this stream: the service refuses the request as it is';

const PERSISTS = 'run it again later; if the problem persists, ask the operator of the service';

/** Repeating the request cannot help. */
const stop = (status: number, code: string, next: string) => ({ code, status, recovery: 'stop', next }) as const;
const retry = (status: number, code: string, next: string) => ({ code, status, recovery: 'retry', next }) as const;

/** Every error code of the contract. */
export const SERVICE_CODES = [
  stop(400, 'bad_request', CHECK_QUERY),
  stop(401, 'unauthorized', 'check apiKey: it may be mistyped, revoked or expired'),
  stop(403, 'forbidden', FORBIDDEN_NEXT.permission),
  stop(404, 'not_found', NOT_FOUND),
  stop(409, 'conflict', PERSISTS),
  stop(410, 'invite_expired', 'renew the invite to the workspace, then the key'),
  stop(422, 'unprocessable_entity', CHECK_QUERY),
  retry(429, 'rate_limit_exceeded', 'check plan, and who else uses this key'),
  retry(500, 'internal_server_error', 'run it again later'),
];

const WITHOUT_LINKS = 'leave links out of the source; events are synced all the same';
/** The advice for events, and what to say instead of it for links, which have neither filters nor dates. */
const ADVICE_FOR_LINKS = [
  [FORBIDDEN_NEXT.permission, `give this key permission to read links, or ${WITHOUT_LINKS}`],
  [NOT_FOUND, `the service has no GET /links at this baseUrl: ${WITHOUT_LINKS}`],
  [CHECK_QUERY, `the service refuses GET /links as it is asked: ${WITHOUT_LINKS}`],
] as const;

export function forLinks(error: unknown): unknown {
  if (error instanceof Fault)
    for (const [ofEvents, ofLinks] of ADVICE_FOR_LINKS) error.next = error.next?.replace(ofEvents, ofLinks);
  return error;
}

/** Temporary statuses outside the contract: request timeout, too early, gateway errors. */
const isTemporary = (status: number): boolean => status === 408 || status === 425 || status >= 500;

/** Usage is matched first: "monthly usage exceeded, upgrade your plan" is about usage. */
export function forbiddenMeaning(message: string): ForbiddenMeaning {
  if (/exceed|usage|quota|monthly/i.test(message)) return 'usage';
  if (/\bplan\b|upgrade|subscri|\btier\b|\bbusiness\b/i.test(message)) return 'plan';
  return 'permission';
}

/** An answer of the service, as far as it could be read. */
export interface Reply {
  status: number;
  headers: { get(name: string): string | null };
  text: string;
}

/** Translates an error answer: stop, or wait. The status decides; for a 200, the error code it carries. */
export function toFault(reply: Reply, redact: Redact): Fault {
  const envelope = readEnvelope(reply.text);
  const known = SERVICE_CODES.find((row) => row.code === envelope?.code);
  const status = reply.status < 300 ? (known?.status ?? 500) : reply.status;
  const row = SERVICE_CODES.find((each) => each.status === status);
  const answer: ServiceAnswer = {
    status,
    code: redact(envelope?.code ?? row?.code ?? 'unknown'),
    message: envelope?.message ? redact(envelope.message, 500) : beginningOf(reply.text, redact),
    serverNow: parseInstant(reply.headers.get('date')),
  };
  if (envelope?.docUrl) answer.docUrl = redact(envelope.docUrl, 300);

  const said = envelope?.message ? answer.message : describeBody(reply.text, redact);
  const sent = reply.status === status ? `${status}` : `${reply.status} with the error ${answer.code}`;
  const message = `the service answered ${sent}: ${said}`;
  const more =
    answer.docUrl && /^https?:\/\//.test(answer.docUrl) ? `; the service explains it at ${answer.docUrl}` : '';
  if ((row?.recovery ?? (isTemporary(status) ? 'retry' : 'stop')) === 'stop') {
    const next = status === 403 ? FORBIDDEN_NEXT[forbiddenMeaning(answer.message)] : row?.next;
    const advice = next ?? 'check baseUrl: this is not an answer of the events API';
    return new StopStream(message, { answer, next: advice + more });
  }
  const afterMs = retryAfterMs(reply.headers, answer.serverNow ?? Date.now());
  return new RetryLater(message, { answer, afterMs, next: (row?.next ?? 'run it again later') + more });
}

/** A redirect is refused, because its target would receive the key. */
export function redirectFault(reply: Omit<Reply, 'text'>, requested: URL, redact: Redact): StopStream {
  const location = reply.headers.get('location');
  const known = location && URL.canParse(location, requested.href);
  const target = (known && new URL(location, requested).host) || 'a missing or invalid address';
  const message = redact(`redirected to ${target}`);
  return new StopStream(
    `the service answered ${reply.status}: ${message}, which was not followed: it would get the key`,
    {
      answer: { status: reply.status, code: 'redirect', message },
      next: 'set baseUrl to the address of the API itself; a redirect to a login page means that it is not',
    },
  );
}

/** Describes an unexpected answer: never more than its beginning. */
export function describeBody(text: string, redact: Redact): string {
  if (text.trim() === '') return 'an empty body';
  return `${/^\s*<(!doctype|html|head|body|\?xml)/i.test(text) ? 'an HTML page' : 'a body'} that begins ${beginningOf(text, redact)}`;
}

/**
 * The beginning of a body. A body that begins like JSON, in any encoding, may hold events, and with them addresses, names and a link's
 * password: only its shape is shown. The key is masked first, because a quote in it would end a text too early.
 */
export function beginningOf(text: string, redact: Redact): string {
  if (!/^[\s\0\ufeff\ufffd]*[[{]/.test(text))
    return redact(redact(text.slice(0, LOOKED_AT), LOOKED_AT).replace(JSON_VALUE_WITHIN, '$1$2***$2'));
  const mask = (whole: string, colon: string | undefined): string => (colon === undefined ? '"***"' : whole);
  return redact(redact(text.slice(0, LOOKED_AT), LOOKED_AT).replace(/"(?:[^"\\]|\\.)*(?:"(\s*:)?|\\?…?$)/gs, mask));
}

/** Error pages for developers show the record at fault, as JSON and often HTML-escaped. */
const JSON_VALUE_WITHIN = /((?:"|&quot;)\s*:\s*)("|&quot;)(?:(?!\2).)*(?:\2|$)/gs;

/** Bodies can be megabytes; more than the shown part is read, because masking shortens it. */
const LOOKED_AT = 4000;

interface Envelope {
  code?: string;
  message?: string;
  docUrl?: string;
}

/** The contract's `{ error: { code, message, doc_url } }`, or as much of it as there is. */
function readEnvelope(text: string): Envelope | undefined {
  const error = field(tryParse(text), 'error');
  if (typeof error === 'string') return { message: error };
  if (typeof error !== 'object' || error === null) return undefined;
  const [code, message, docUrl] = ['code', 'message', 'doc_url'].map((name) => field(error, name));
  return {
    ...(typeof code === 'string' && code !== '' && { code }),
    ...(typeof message === 'string' && message !== '' && { message }),
    ...(typeof docUrl === 'string' && docUrl !== '' && { docUrl }),
  };
}

export const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Not JSON: the body is described instead of read.
  }
}

/** Never zero, which would hammer the service; never millennia, as a garbled header may request. */
const SHORTEST_MS = 1000;
const LONGEST_MS = 120_000;

/** Smaller numbers are seconds to wait; from here on (the year 2001) they are a point in time. */
const FIRST_EPOCH_SECOND = 1e9;

/**
 * How long the service asks us to wait, or undefined if it says nothing usable. `Retry-After` comes as seconds, an
 * HTTP date, epoch seconds or epoch milliseconds; `X-RateLimit-Reset` as epoch seconds or milliseconds. Points in time are
 * measured against `now`, the service's own clock if it gave one: ours may be minutes off. `X-RateLimit-Limit` is
 * never used: it is documented per hour and is per second in practice.
 */
export function retryAfterMs(headers: { get(name: string): string | null }, now: Instant): number | undefined {
  const [after = '', reset = ''] = ['retry-after', 'x-ratelimit-reset'].map((name) => headers.get(name)?.trim());
  const isSeconds = /^\d+(\.\d+)?$/.test(after) && Number(after) < FIRST_EPOCH_SECOND;
  const moments = [
    isSeconds ? now + Number(after) * 1000 : parseInstant(after),
    Number(reset) < FIRST_EPOCH_SECOND ? undefined : parseInstant(reset),
  ];
  // A time in the past says nothing about how long to wait.
  const moment = moments.find((at) => at !== undefined && at >= now);
  return moment === undefined ? undefined : clamp(moment - now);
}

const clamp = (ms: number): number => Math.min(Math.max(ms, SHORTEST_MS), LONGEST_MS);

/**
 * A failed connection as a retryable error, or undefined if it is not a network failure: a bug must
 * not be retried. The original error is described, not attached: a library may attach anything to its
 * errors, and the request held the key.
 */
export function networkFault(error: unknown, url: URL, bytesRead: number): RetryLater | undefined {
  // Node's network errors are plain errors with a code; a call that is wrong is a TypeError or RangeError, with a code too.
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string') return undefined;
  // A parse error after the answer began means that it was truncated.
  const row = meaningOf(bytesRead > 0 && code.startsWith('HPE_') ? 'ECONNRESET' : code);
  const place = `${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
  const after = bytesRead > 0 ? ` after ${bytesRead} bytes of the answer` : '';
  return new RetryLater(`${place}: ${row?.what ?? 'the request failed'}${after} (${code})`, {
    next: row?.next ?? 'run it again; if the problem persists, check the network and baseUrl',
    // A proxy may truncate a body that is too large for it.
    answer: bytesRead > 0 ? { ...CUT, status: 200 } : undefined,
  });
}

/** Makes text of the service safe to show: one line, of bounded length, without the key. */
export type Redact = (text: string, maxLength?: number) => string;

const SHOWN = 120;

/**
 * Services echo the key in error messages and on HTML pages. All their text passes through here before it reaches
 * an error or a log line. The order matters: invisible characters are removed first, or a key split by one would slip
 * through the mask; the length is cut last, or half a key would remain at the edge.
 */
export function createRedact(key: string): Redact {
  const forms = [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1), ...inBase64(key)];
  const anyForm = new RegExp(forms.map((form) => form.replace(/[^A-Za-z0-9]/g, '\\$&')).join('|'), 'gi');
  return (text, maxLength = SHOWN) => {
    const line = text
      .replace(/\s+/g, ' ')
      .replace(/\p{C}+/gu, '')
      .trim()
      .replace(anyForm, '***');
    return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
  };
}

/** The key inside a Base64 `user:key`, at each of three byte offsets, without characters that depend on adjacent bytes. */
const inBase64 = (key: string): string[] =>
  [0, 1, 2]
    .map((offset) =>
      Buffer.from(`${' '.repeat(offset)}${key}`)
        .toString('base64')
        .slice(offset && offset + 1),
    )
    .map((text) => text.replace(/.=+$/, ''))
    .filter((text) => text.length >= SHORTEST_CODE);

/** Fewer characters may match by chance. */
const SHORTEST_CODE = 8;
