import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { kill } from '../../test/support/budget-processes.ts';
import type { Place } from './engine.ts';

const SCRIPT = fileURLToPath(new URL('./apart-child.ts', import.meta.url));

type Answer = { seconds: number } | { error: string };

/**
 * Syncs in a separate process that stays warm: this process holds every row several times for other
 * measurements, which makes its garbage collection slow. Returns seconds.
 */
export async function withSyncsApart<T>(work: (sync: (place: Place) => Promise<number>) => Promise<T>): Promise<T> {
  const child = fork(SCRIPT);
  const gone = once(child, 'exit').then(() => {
    throw new Error('the process that syncs for the bench has ended');
  });
  gone.catch(() => {}); // It ends with the work, too.
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
