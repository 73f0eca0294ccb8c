import { createServer, type RequestListener, type Server } from 'node:http';
import { onTestFinished } from 'vitest';
import { closed, listening } from './front.ts';

export type TestServer = Awaited<ReturnType<typeof serve>>;

/** A real HTTP server on a free port, closed with its test. */
export async function serve(listener: RequestListener) {
  /** `METHOD path` of every request. */
  const seen: string[] = [];
  const server: Server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    listener(request, response);
  });
  const port = await listening(server);
  const close = (): Promise<void> => closed(server);
  onTestFinished(close);
  return { baseUrl: `http://127.0.0.1:${port}`, port, seen, close };
}
