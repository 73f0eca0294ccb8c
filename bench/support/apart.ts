import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { kill } from '../../test/support/budget-processes.ts';
import type { Place } from './engine.ts';

const SCRIPT = fileURLToPath(new URL('./apart-child.ts', import.meta.url));

/**
 * Syncs in a process of its own, warm from one to the next: this one holds every row several times over for its other
 * measurements, and whoever syncs here pays for collecting garbage around them. Returns seconds.
 */
export async function withSyncsApart<T>(work: (sync: (place: Place) => Promise<number>) => Promise<T>): Promise<T> {
  const child = fork(SCRIPT);
  try {
    return await work(async (place) => {
      child.send(place);
      const gone = once(child, 'exit').then(() => {
        throw new Error('the process that syncs for the bench has ended');
      });
      gone.catch(() => {}); // It ends when the work is done, too.
      const [answer] = (await Promise.race([once(child, 'message'), gone])) as [
        { seconds: number } | { error: string },
      ];
      if ('error' in answer) throw new Error(answer.error);
      return answer.seconds;
    });
  } finally {
    await kill([child]);
  }
}
