import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Instant } from '../../src/model/instant.ts';
import { kill } from '../../test/support/budget-processes.ts';

export interface Service {
  baseUrl: string;
  /** Before its first event. */
  since: Instant;
}

interface Started extends Service {
  pid: number | undefined;
}

const SCRIPT = fileURLToPath(new URL('./serve.ts', import.meta.url));

/** Runs a service with so many clicks in a separate process until the work ends. */
export async function withService<T>(rows: number, work: (service: Started) => Promise<T>): Promise<T> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), SCRIPT, String(rows)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    return await work({ ...(await firstLine(child)), pid: child.pid });
  } finally {
    await kill([child]);
  }
}

async function firstLine(child: ChildProcess): Promise<Service> {
  const gone = once(child, 'exit').then(() => {
    throw new Error('the service of the bench did not start');
  });
  const [line] = (await Promise.race([once(child.stdout ?? child, 'data'), gone])) as [Buffer];
  return JSON.parse(String(line)) as Service;
}
