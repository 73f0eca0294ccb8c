import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { createHistory } from './stamped.ts';

/**
 * A service in a separate process, so that its work is not measured: `serve.ts ROWS`. It has no limit and no delay, and compresses pages as
 * services do, but caches them: repeated requests are answered immediately.
 */
const pack = promisify(gzip);
const MOST_KEPT = 200;
const history = createHistory(Number(process.argv[2]), Date.now());
const kept = new Map<string, Buffer>();

const server = createServer(async (request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://127.0.0.1');
  const { key, text } = history.page({
    start: Date.parse(searchParams.get('start') ?? ''),
    end: Date.parse(searchParams.get('end') ?? ''),
    isAscending: searchParams.get('sortOrder') === 'asc',
    page: Number(searchParams.get('page')),
    limit: Number(searchParams.get('limit')),
  });
  const body = kept.get(key) ?? (await pack(text()));
  if (kept.size < MOST_KEPT) kept.set(key, body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ baseUrl: `http://127.0.0.1:${port}`, since: history.since })}\n`);
});
