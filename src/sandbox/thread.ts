import { parentPort, workerData } from 'node:worker_threads';
import { type SandboxOptions, startSandbox } from './server.ts';

/** The sandbox on a thread of its own: see `startSandboxThread`. */
const { baseUrl, apiKey } = await startSandbox(workerData as SandboxOptions);
parentPort?.postMessage({ baseUrl, apiKey });
