import { RetryLater, StopStream } from '../../src/model/errors.ts';
import { HttpError } from '../../src/sandbox/params.ts';

/** The typed error of `src/api` for a status, for services without HTTP. */
export function serviceError(status: number, message = `the service answered ${status}`): RetryLater | StopStream {
  const answer = { status, code: `simulated_${status}`, message };
  return status === 429 || status >= 500 ? new RetryLater(message, { answer }) : new StopStream(message, { answer });
}

/** The answer of a service model; its refusals become typed errors of `src/api`. */
export function answerOf<T>(model: () => T): T {
  try {
    return model();
  } catch (error) {
    throw error instanceof HttpError ? serviceError(error.status, error.message) : error;
  }
}
