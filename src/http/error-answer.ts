import { Cancelled, ConfigError, Fault, RetryLater, StopStream } from '../model/errors.ts';
import type { ApiError } from './api-types.ts';
import { Refusal } from './route.ts';

/** What goes wrong, as an answer. Undefined: nobody foresaw it, and its words may hold anything. */
export function answerOf(error: unknown): ApiError | undefined {
  if (error instanceof Fault) {
    const { message, kept, next } = error;
    return { error: { status: statusOf(error), message, kept: kept ?? null, next: next ?? null } };
  }
  // The web server's own: a body that is no JSON, too large, or not as the schema says.
  const { statusCode, message } = error as { statusCode?: unknown; message?: unknown };
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return undefined;
  return { error: { status: statusCode, message: String(message), kept: null, next: 'see /api/openapi.json' } };
}

export const BUG: ApiError = {
  error: {
    status: 500,
    message: 'this is a bug in tributary',
    kept: null,
    next: 'the log of the server says more; please report it',
  },
};

function statusOf(fault: Fault): number {
  if (fault instanceof Refusal) return fault.status;
  if (fault instanceof ConfigError) return 400;
  // The service refused us while a price was asked for: we are between, and it is behind us.
  if (fault instanceof StopStream) return 502;
  return fault instanceof RetryLater || fault instanceof Cancelled ? 503 : 500;
}
