import { randomUUID } from 'node:crypto';
import { StopStream } from '../../model/errors.ts';
import { type Finding, findingOf, ok } from '../../model/finding.ts';
import type { Store } from './store/store.ts';

/** Tries out what a commit does to the lake: write, read, remove. Nothing stays. */
export async function checkLake(store: Store, subject: string): Promise<Finding[]> {
  const path = `_doctor-${randomUUID()}.txt`;
  try {
    await store.writeText(path, path);
    if ((await store.readText(path)) !== path) {
      throw new StopStream(`${store.place} gave back something else than was written`, {
        next: 'see what keeps copies or changes files there',
      });
    }
    const file = await store.open(path);
    await file?.close();
    if (file) await store.remove(path, file.identity);
    return [ok(subject, `${store.place}: can write, read and remove`)];
  } catch (error) {
    return [findingOf(subject, error)];
  }
}
