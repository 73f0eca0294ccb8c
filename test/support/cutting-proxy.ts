import { createConnection, createServer, type Socket } from 'node:net';
import { listening } from './front.ts';

/** Stands before Postgres and breaks the connection at the worst moment: around COMMIT. */
export interface CuttingProxy {
  url: string;
  /**
   * What becomes of the next COMMIT. `answer`: it is carried out and its answer lost. `question`: it never arrives. How many more
   * to let through first.
   */
  cutNext(what: 'answer' | 'question', letThrough?: number): void;
  /** How often it was cut. */
  cuts(): number;
  close(): Promise<void>;
}

const COMMIT = Buffer.from('COMMIT\0');

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let next: 'answer' | 'question' | undefined;
  let waits = 0;
  let cuts = 0;

  const server = createServer((client) => {
    const upstream = createConnection({ host: hostname, port: Number(port) });
    let isMuted = false;
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', end).on('close', () => {
        open.delete(socket);
        end();
      });
    }
    client.on('data', (chunk: Buffer) => {
      if (next !== undefined && chunk.includes(COMMIT) && waits-- <= 0) {
        cuts++;
        const what = next;
        next = undefined;
        if (what === 'question') return end();
        isMuted = true;
      }
      upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      // The server has answered: the commit stands, and nobody hears of it.
      if (isMuted) return end();
      client.write(chunk);
    });
  });
  const url = Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(await listening(server)) });
  return {
    url: url.href,
    cutNext(what, letThrough = 0) {
      next = what;
      waits = letThrough;
    },
    cuts: () => cuts,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
