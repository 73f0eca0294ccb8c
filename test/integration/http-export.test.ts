import { writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { freshPlace } from '../support/cli.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { ROOM_TOKEN, syncedRoom } from '../support/http-room.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import { smallSandbox, sorted } from '../support/sandbox.ts';
import { until, workerConfig } from '../support/workers.ts';

/** More pages than all buffers between two local processes hold. */
const CLICKS = 14_000;
const RANGE = 'from=31d&to=now';

const [{ db, url }, sandbox] = await Promise.all([
  forThisFile(emptyEngine()),
  smallSandbox({ rows: { clicks: CLICKS, leads: 60, sales: 40 } }),
]);
// The clicks are not synced: the export reads the service.
const config = workerConfig({
  ...{ stateUrl: url, queueUrl: undefined, sandboxes: { main: sandbox }, every: '1h' },
  rest: { privacy: { ip: 'drop' } },
});
for (const source of Object.values(config.sources)) source.since = new Date(Date.now() - 3_600_000).toISOString();
const room = await forThisFile(syncedRoom(config));

/** Old enough that no event can still arrive. */
const PAST = `from=${new Date(Date.now() - 40 * 86_400_000).toISOString()}&to=${new Date(Date.now() - 86_400_000).toISOString()}`;
const pathOf = (stream: string, query: string): string => `/api/export/${stream}?${RANGE}&${query}`;

/** The raw response: compressed, and with its trailers. */
async function open(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(room.url + path, { headers: { ...headers, authorization: `Bearer ${ROOM_TOKEN}` } }, resolve)
      .on('error', reject)
      .end();
  });
}
async function download(path: string, headers: Record<string, string> = {}) {
  const response = await open(path, headers);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { headers: response.headers, trailers: response.trailers, bytes: Buffer.concat(chunks) };
}
const linesOf = (text: string): Array<Record<string, unknown>> =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const pagesAsked = (): number => sandbox.service.requests.filter(({ query }) => query.event === 'clicks').length;

describe('an export over HTTP', () => {
  it('has every event once in each format, says whether it is certified, and follows the privacy settings', async () => {
    const { dir } = await freshPlace();
    for (const format of ['ndjson', 'csv', 'parquet'] as const) {
      const { headers, trailers, bytes } = await download(pathOf('leads', `format=${format}`));
      expect(headers['content-disposition']).toMatch(
        /^attachment; filename="main-leads-[\d-]+\.(ndjson|csv|parquet)"$/,
      );
      expect(trailers['x-tributary-certified']).toBe('false');
      const file = join(dir, `leads.${format}`);
      await writeFile(file, bytes);
      const rows = await queryDuckdb(`select event_id, click_ip from '${file}'`);
      expect(sorted(rows.map(({ event_id }) => String(event_id)))).toEqual(sorted(sandbox.service.ids('leads')));
      expect(rows.every(({ click_ip }) => click_ip === null)).toBe(true);
    }
    const { trailers } = await download(`/api/export/leads?${PAST}&format=ndjson`);
    expect(trailers['x-tributary-certified']).toBe('true');
  });

  it('can be filtered, and compressed if that helps', async () => {
    const path = pathOf('leads', 'format=ndjson&filter=country=US&filter=trigger=link');
    const plain = await download(path);
    const rows = linesOf(plain.bytes.toString());
    expect(new Set(rows.map(({ click_country }) => click_country))).toEqual(new Set(['US']));
    expect(plain.headers).toMatchObject({ vary: 'accept-encoding' });
    for (const [encoding, unpack] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const packed = await download(path, { 'accept-encoding': encoding });
      expect(packed.headers['content-encoding']).toBe(encoding);
      expect(linesOf(unpack(packed.bytes).toString())).toEqual(rows);
      expect(packed.trailers).toHaveProperty('x-tributary-certified');
      expect(packed.bytes.length / plain.bytes.length).toBeLessThan(0.5);
    }
    const parquet = await download(pathOf('leads', 'format=parquet'), { 'accept-encoding': 'br' });
    expect(parquet.headers).not.toHaveProperty('content-encoding');
  });

  it('omits forgotten customers, although the service still has them', async () => {
    const before = linesOf((await download(pathOf('sales', 'format=ndjson'))).bytes.toString());
    const person = before.find(({ customer_email }) => customer_email !== null);
    expect(person).toBeDefined();
    await room.send('POST', '/api/forget', { source: 'main', customer: person?.customer_id });
    const { bytes } = await download(pathOf('sales', 'format=ndjson'));
    expect(bytes.toString()).not.toContain(String(person?.customer_email));
    expect(linesOf(bytes.toString())).toHaveLength(before.length);
  });

  it('reads only as fast as the client does, and stops when it disconnects', async () => {
    const before = pagesAsked();
    const response = await open(pathOf('clicks', 'format=ndjson'));
    response.pause();
    await until('requests have stopped', async () => {
      const seen = pagesAsked();
      await sleep(700);
      return pagesAsked() === seen && seen > before;
    });
    const waiting = pagesAsked();
    expect((waiting - before) / (CLICKS / 1000)).toBeLessThan(0.8);
    response.destroy();
    await until('another export is admitted', async () => {
      const both = await Promise.all([1, 2].map(() => download(pathOf('leads', 'format=csv'))));
      return both.every(({ trailers }) => trailers['x-tributary-certified'] !== undefined);
    });
    expect(pagesAsked() - waiting).toBeLessThanOrEqual(1);
  });

  it('is limited to two at a time', async () => {
    sandbox.service.faults.add({ delayMs: 1500, times: 2, match: { event: 'sales' } });
    const first = [1, 2].map(() => download(pathOf('sales', 'format=csv')));
    await until('both have begun', () => sandbox.service.faults.pending === 0);
    const third = await room.get(pathOf('leads', 'format=csv'));
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '60']);
    await Promise.all(first);
  });

  it('answers a refusal of the service with an error, and breaks off if it fails midway', async () => {
    sandbox.service.faults.add({ status: 403, message: 'not on this plan', match: { event: 'sales' }, times: 1000 });
    const refused = await room.get(pathOf('sales', 'format=csv'));
    expect([refused.status, await refused.text()]).toEqual([502, expect.stringContaining('not on this plan')]);
    let pages = 0;
    const isLate = ({ query }: { query: Readonly<Record<string, string>> }) => query.event === 'clicks' && ++pages > 5;
    sandbox.service.faults.add({ status: 403, times: 1000, when: isLate });
    await expect(download(pathOf('clicks', 'format=ndjson'))).rejects.toThrow(/aborted/);
    sandbox.service.faults.clear();
  });

  it('refuses invalid requests and those of another site', async () => {
    for (const [path, status] of [
      ['/api/export/leads?format=csv', 400],
      [pathOf('leads', 'format=xlsx'), 400],
      [pathOf('leads', 'format=csv&filter=country'), 400],
      [pathOf('leads', 'format=csv&filter=contry=DE'), 400],
      [pathOf('leads', 'format=csv&source=x'), 404],
      [pathOf('links', 'format=csv'), 400],
    ] as const)
      expect([path, (await room.get(path)).status]).toEqual([path, status]);
    const asked = pagesAsked();
    const elsewhere = await open(pathOf('leads', 'format=csv'), { 'sec-fetch-site': 'cross-site' });
    expect(elsewhere.statusCode).toBe(403);
    const headers = { authorization: `Bearer ${ROOM_TOKEN}` };
    expect((await fetch(room.url + pathOf('leads', 'format=csv'), { method: 'HEAD', headers })).status).toBe(405);
    expect(pagesAsked()).toBe(asked);
  });

  it('leaves nothing of it in the state', async () => {
    const runs = await db.query<{ kind: string }>({ text: 'select distinct kind from tributary.runs' });
    expect(runs.map(({ kind }) => kind)).toEqual(['sync']);
  });
});
