import { describe, expect, it } from 'vitest';
import { withClosers } from '../../src/app/resources.ts';

/** Opens three resources; the one in the middle cannot be closed. */
function openThree(closed: string[]) {
  return (closers: Array<() => Promise<void> | void>): void => {
    closers.push(() => void closed.push('first'));
    closers.push(async () => {
      throw new Error('the second does not close');
    });
    closers.push(() => void closed.push('third'));
  };
}

describe('closing', () => {
  it('closes all others in reverse order when one fails, and reports the failure', async () => {
    const closed: string[] = [];
    const open = openThree(closed);
    await expect(withClosers(async (closers) => open(closers))).rejects.toThrow('the second does not close');
    expect(closed).toEqual(['third', 'first']);
  });

  it('keeps the error of the work', async () => {
    const closed: string[] = [];
    const open = openThree(closed);
    const work = withClosers(async (closers) => {
      open(closers);
      throw new Error('the work failed');
    });
    await expect(work).rejects.toThrow('the work failed');
    expect(closed).toEqual(['third', 'first']);
  });

  it('returns the result of the work', async () => {
    await expect(withClosers(async () => 7)).resolves.toBe(7);
  });
});
