import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggedRequest } from '../../../src/sandbox/requests.ts';
import { type ChildOptions, kill, startProcesses } from '../../../test/support/budget-processes.ts';
import type { Sandbox } from '../../../test/support/odd-service/service.ts';

/** A page is a handful: what is counted is requests. */
export const ROWS = { clicks: 50, leads: 50, sales: 50 };

/** A process that starts compiles what it runs: its first requests leave late. */
const WARM_UP_MS = 3000;

/** Processes that ask for all they can get; returns what each service saw of them in so many seconds. */
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
    // What is under way when they are killed was never answered.
    return sandboxes.map(({ service }, i) => service.log.entries.slice(from[i]).filter(({ status }) => status > 0));
  } finally {
    await kill(children);
  }
}
