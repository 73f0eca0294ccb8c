import { RetryLater, StopStream } from '../model/errors.ts';
import { parseJson } from '../model/json.ts';
import type { Say } from './say.ts';
import { beginningOf, describeBody, field, type Reply, toFault } from './service-errors.ts';

/** The records of a 200, or the error that says what came instead of a list. */
export function readRecords(reply: Reply, say: Say): readonly unknown[] {
  const value = parse(reply.text, say);
  if (Array.isArray(value)) return value;
  if (field(value, 'error')) throw toFault(reply, say);
  throw new StopStream(
    `the service answered ${reply.status} with JSON that is not a list: ${beginningOf(reply.text, say)}`,
    {
      answer: { status: reply.status, code: 'not_a_list', message: beginningOf(reply.text, say) },
      next: 'check baseUrl: this is no answer of the events listing',
    },
  );
}

function parse(text: string, say: Say): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own error quotes the body, and with it a key that the body may echo: it is not passed on.
    // An answer cut short and a maintenance page pass by themselves, so this may be tried again.
    throw new RetryLater(`the service answered 200 with ${describeBody(text, say)}, which is not JSON`, {
      next: 'run it again later; if it stays, check baseUrl and any proxy between',
    });
  }
}
