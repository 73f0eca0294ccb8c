import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { kill } from '../../test/support/budget-processes.ts';
import type { Place } from './engine.ts';

const SCRIPT = fileURLToPath(new URL('./apart-child.ts', import.meta.url));

type Answer = { seconds: number } | { error: string };

/**
 * Syncs in a process of its own, warm from one to the next: this one holds every row several times over for its other
 * measurements, and whoever syncs here pays for collecting garbage around them. Returns seconds.
 */
export async function withSyncsApart<T>(work: (sync: (place: Place) => Promise<number>) => Promise<T>): Promise<T> {
  const child = fork(SCRIPT);
  const gone = once(child, 'exit').then(() => {
    throw new Error('the process that syncs for the bench has ended');
  });
  gone.catch(() => {}); // It ends when the work is done, too.
  try {
    return await work(async (place) => {
      const answered = new Promise<Answer>((resolve) => child.once('message', (answer) => resolve(answer as Answer)));
      child.send(place);
      const answer = await Promise.race([answered, gone]);
      if ('error' in answer) throw new Error(answer.error);
      return answer.seconds;
    });
  } finally {
    await kill([child]);
  }
}
