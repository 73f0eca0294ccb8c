import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type SandboxOptions, startSandbox } from './server.ts';

/**
 * Starts the sandbox on its own thread. On the main thread it would count requests late while a page is being parsed, and refuse
 * evenly spaced requests as a burst. The thread ends with the process.
 */
export async function startSandboxThread(sandbox: Omit<SandboxOptions, 'now' | 'limiter'>) {
  const thread = new Worker(new URL('./thread.js', import.meta.url), { workerData: { sandbox } });
  const [{ baseUrl, apiKey }] = (await once(thread, 'message')) as [{ baseUrl: string; apiKey: string }];
  return { baseUrl, apiKey, close: async () => void (await thread.terminate()) };
}

if (!isMainThread && workerData?.sandbox) {
  void startSandbox(workerData.sandbox as SandboxOptions).then(({ baseUrl, apiKey }) =>
    parentPort?.postMessage({ baseUrl, apiKey }),
  );
}
