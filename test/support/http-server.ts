import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TestServer {
  baseUrl: string;
  port: number;
  /** `METHOD path` of every request that came. */
  seen: string[];
  close(): Promise<void>;
}

/** A real HTTP server on a free port of this machine, closed when the test that opened it ends. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const seen: string[] = [];
  const server: Server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(close);
  return { baseUrl: `http://127.0.0.1:${port}`, port, seen, close };
}
