/** The nine errors of the contract. */
const ERROR_STATUS = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  invite_expired: 410,
  unprocessable_entity: 422,
  rate_limit_exceeded: 429,
  internal_server_error: 500,
} as const;
export type ErrorCode = keyof typeof ERROR_STATUS;

/** An answer other than the list of events. Thrown by the service, written by the HTTP skin. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(code: ErrorCode, message: string, status: number = ERROR_STATUS[code]) {
    super(message);
    this.name = 'HttpError';
    this.code = code;
    this.status = status;
  }
}

export const envelope = (code: string, message: string): object => ({
  error: { code, message, doc_url: `https://docs.sandbox.invalid/api-reference/errors#${code.replaceAll('_', '-')}` },
});

/** Statuses outside the contract borrow the nearest code: a 503 is an internal error, a 405 a bad request. */
export function codeOf(status: number): ErrorCode {
  const known = (Object.keys(ERROR_STATUS) as ErrorCode[]).find((code) => ERROR_STATUS[code] === status);
  return known ?? (status >= 500 ? 'internal_server_error' : 'bad_request');
}
