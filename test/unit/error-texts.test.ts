import { describe, expect, it } from 'vitest';
import { errorTexts } from './generated/error-texts.ts';

/** The rules that a machine can check of the messages that error-texts.md lists. The rest is for whoever reads it there. */

const TEXTS = errorTexts();
const all = TEXTS.flatMap(({ message, kept, next }) => [message, kept ?? '', next ?? '']).filter(Boolean);

describe('the text of every error', () => {
  it('is found', () => {
    expect(TEXTS.length).toBeGreaterThan(50);
    expect(TEXTS).toContainEqual({
      file: 'cursor/leases.ts',
      kind: 'RetryLater',
      message: 'this process lost its lease on the stream: another process may hold it now',
      kept: 'everything committed so far; this batch was not written',
      next: 'nothing, if the other process is yours; otherwise run again',
    });
  });

  it('is a clause, not a shout: no capital at its start, no full stop, no exclamation', () => {
    const isName = /^(TRIBUTARY_|Postgres|Redis)/;
    expect(all.filter((text) => (/^[A-Z]/.test(text) && !isName.test(text)) || /[.!]$/.test(text))).toEqual([]);
  });

  it('has none of the words that say nothing', () => {
    expect(
      all.filter((text) => /\b(invalid|illegal|oops|failed to|unable to|error occurred|please|fatal)\b/i.test(text)),
    ).toEqual([]);
  });

  it('says what to do, or where that is said', () => {
    const silent = TEXTS.filter(({ kind, next }) => next === undefined && !['BadRecord', 'Cancelled'].includes(kind));
    // A list of faults follows, each with its own advice; what must be is named; or the advice is handed in.
    const isExcused = /:$|must be|^the state in schema|^gave up/;
    expect(silent.map(({ message }) => message).filter((message) => !isExcused.test(message))).toEqual([
      'an earlier statement failed, so the transaction was rolled back',
    ]);
  });
});
