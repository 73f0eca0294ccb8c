import { describe, expect, it } from 'vitest';
import { errorTexts } from './generated/error-texts.ts';

/** Rules for the messages in error-texts.md that a machine can check. */

const TEXTS = errorTexts();
const all = TEXTS.flatMap(({ message, kept, next }) => [message, kept ?? '', next ?? '']).filter(Boolean);

describe('the text of every error', () => {
  it('is found in the source', () => {
    expect(TEXTS.length).toBeGreaterThan(50);
    expect(TEXTS).toContainEqual({
      file: 'cursor/leases.ts',
      kind: 'RetryLater',
      message: 'this process lost its lease on the stream: another process may hold it now',
      kept: 'everything committed so far; this batch was not written',
      next: 'nothing, if the other process is yours; otherwise run again',
    });
  });

  it('is a clause: no initial capital, no full stop, no exclamation mark', () => {
    const isName = /^(TRIBUTARY_|Postgres|Redis)/;
    expect(all.filter((text) => (/^[A-Z]/.test(text) && !isName.test(text)) || /[.!]$/.test(text))).toEqual([]);
  });

  it('has no empty words', () => {
    expect(
      all.filter((text) => /\b(invalid|illegal|oops|failed to|unable to|error occurred|please|fatal)\b/i.test(text)),
    ).toEqual([]);
  });

  it('names the next action, or where it is described', () => {
    const silent = TEXTS.filter(({ kind, next }) => next === undefined && !['BadRecord', 'Cancelled'].includes(kind));
    // Excused: a list of faults with their own advice; a named condition; advice passed in by the caller.
    const isExcused = /:$|must be|^the state in schema|^gave up/;
    expect(silent.map(({ message }) => message).filter((message) => !isExcused.test(message))).toEqual([
      'an earlier statement failed, so the transaction was rolled back',
    ]);
  });
});
