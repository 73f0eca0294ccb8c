import { StreamBusy } from '../cursor/leases.ts';
import { Cancelled, ConfigError, Fault, type FaultDetails, RetryLater, StopStream } from '../model/errors.ts';
import { count, named, object, orNull, text, type z } from './shapes.ts';

/** What was asked cannot be answered, and the status says why. */
export class HttpError extends Fault {
  readonly status: number;
  /** Seconds, where waiting helps. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, details: FaultDetails & { retryAfter?: number } = {}) {
    super(message, details);
    this.status = status;
    this.retryAfter = details.retryAfter;
  }
}

/**
 * Every answer that is no success. 400: not as the document says. 409: as it says, but against itself or the state of things. 401: sign in. 403: the role does not allow it, or the CSRF token is
 * missing or old. 404: not there. 429: too many wrong tokens, or exports at once. 503: a dependency is away, and is named.
 */
export const ApiError = named(
  'ApiError',
  object({ error: object({ status: count, message: text, kept: orNull(text), next: orNull(text) }) }),
);
export type ApiError = z.infer<typeof ApiError>;

const apiError = (status: number, message: string, kept?: string, next?: string): ApiError => ({
  error: { status, message, kept: kept ?? null, next: next ?? null },
});

export const BUG = apiError(
  500,
  'this is a bug in tributary',
  undefined,
  'the log of the server says more; please report it',
);

/** What goes wrong, as an answer. Undefined: nobody foresaw it, and its words may hold anything. */
export function errorAnswer(error: unknown): ApiError | undefined {
  if (error instanceof Fault) return apiError(statusOf(error), error.message, error.kept, error.next);
  const { statusCode } = error as { statusCode?: unknown };
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return undefined;
  return apiError(statusCode, WORDS[statusCode] ?? 'the request cannot be read', undefined, 'see /api/openapi.json');
}

/** For what the web server refuses by itself, whose own words are for programmers. */
const WORDS: Readonly<Record<number, string>> = {
  400: 'the request is not well-formed',
  413: 'the body is too large',
  414: 'the address is too long',
  415: 'the body must be application/json',
};

function statusOf(fault: Fault): number {
  if (fault instanceof HttpError) return fault.status;
  // What is malformed was refused at the door: this is well-formed, and cannot be as things stand.
  if (fault instanceof ConfigError || fault instanceof StreamBusy) return 409;
  // The service refused us while a price was asked for: we are between, and it is behind us.
  if (fault instanceof StopStream) return 502;
  return fault instanceof RetryLater || fault instanceof Cancelled ? 503 : 500;
}
