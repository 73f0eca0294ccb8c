import { RetryLater, StopStream } from '../../src/model/errors.ts';

/** The typed error that `src/api` makes of a status, for services that are not reached over HTTP. */
export function serviceError(status: number, message = `the service answered ${status}`): RetryLater | StopStream {
  const answer = { status, code: `simulated_${status}`, message };
  return status === 429 || status >= 500 ? new RetryLater(message, { answer }) : new StopStream(message, { answer });
}
