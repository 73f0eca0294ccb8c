import { createServer } from 'node:http';
import { closed, listening } from './front.ts';

/** What becomes of a request: `pass` hands it on; a status is answered instead, before it is handed on, or after it took effect. */
export type Fate = 'pass' | { before: number } | { after: number };

/** Stands before a real catalog and lets things go wrong. */
export async function catalogProxy(target: string, fateOf: (method: string, path: string, token: string) => Fate) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [method, path] = [request.method ?? 'GET', request.url ?? '/'];
    const fate = fateOf(method, path, (request.headers.authorization ?? '').replace('Bearer ', ''));
    const refuse = (status: number): void => void response.writeHead(status).end('{}');
    if (typeof fate === 'object' && 'before' in fate) return refuse(fate.before);
    const answer = await fetch(target + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const text = await answer.text();
    if (typeof fate === 'object') return refuse(fate.after);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  });
  return { uri: `http://127.0.0.1:${await listening(server)}`, close: () => closed(server) };
}
