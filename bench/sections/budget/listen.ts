import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggedRequest } from '../../../src/sandbox/requests.ts';
import { type ChildOptions, kill, startProcesses } from '../../../test/support/budget-processes.ts';
import type { Sandbox } from '../../../test/support/odd-service/service.ts';

/** A page is small: requests are counted. */
export const ROWS = { clicks: 50, leads: 50, sales: 50 };

/** A new process compiles its code: its first requests are late. */
const WARM_UP_MS = 3000;

/** Processes that use all of the available budget; returns what each service saw of them in so many seconds. */
export async function listen(
  sandboxes: readonly Sandbox[],
  clients: readonly ChildOptions[],
  seconds: number,
): Promise<LoggedRequest[][]> {
  const children = await startProcesses(clients);
  try {
    await sleep(WARM_UP_MS);
    const from = sandboxes.map(({ service }) => service.log.entries.length);
    await sleep(seconds * 1000);
    // Requests in progress at the kill were never answered.
    return sandboxes.map(({ service }, i) => service.log.entries.slice(from[i]).filter(({ status }) => status > 0));
  } finally {
    await kill(children);
  }
}
