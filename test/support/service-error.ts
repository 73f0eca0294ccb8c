import { RetryLater, StopStream } from '../../src/model/errors.ts';
import { HttpError } from '../../src/sandbox/params.ts';

/** The typed error that `src/api` makes of a status, for services that are not reached over HTTP. */
export function serviceError(status: number, message = `the service answered ${status}`): RetryLater | StopStream {
  const answer = { status, code: `simulated_${status}`, message };
  return status === 429 || status >= 500 ? new RetryLater(message, { answer }) : new StopStream(message, { answer });
}

/** What a model of the service answers; what it refuses is the typed error of `src/api`. */
export function answerOf<T>(model: () => T): T {
  try {
    return model();
  } catch (error) {
    throw error instanceof HttpError ? serviceError(error.status, error.message) : error;
  }
}
