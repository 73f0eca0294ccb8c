import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { freshPlace } from '../support/cli.ts';
import { docsSql } from '../support/docs-sql.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { freePort } from '../support/free-port.ts';
import { listening } from '../support/front.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import { smallSandbox } from '../support/sandbox.ts';

/**
 * Amounts as services send them, with the built binary: several currencies, upper and lower case, as text, with a fraction.
 * Every sum keeps currencies apart, treats yen as whole units, and loses nothing.
 */
const AMOUNTS: ReadonlyArray<readonly [currency: string | null, amount: number | string]> = [
  ['usd', 1999],
  ['USD', 1001],
  ['usd', '2000.00'],
  ['eur', 12.5],
  ['JPY', 1500],
  ['jpy', 500],
  ['KRW', 12_000],
  ['kwd', 1234],
  [null, 700],
  ['', 300],
];
const MINOR_UNITS = { usd: 5000, eur: 13, jpy: 2000, krw: 12_000, kwd: 1234, null: 1000 };
const REVENUE = { usd: 50, eur: 0.13, jpy: 2000, krw: 12_000, kwd: 1.234, null: 10 };

const TOKEN = 'a-long-token-that-nobody-guesses';
const place = await freshPlace();
const { db, url } = await forThisFile(emptyEngine());
const port = await freePort();

beforeAll(async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 20, leads: 20, sales: AMOUNTS.length } });
  const known: string[] = [];
  const server = createServer(async ({ url: path = '', headers }, response) => {
    const answer = await fetch(`${sandbox.baseUrl}${path}`, {
      headers: { authorization: headers.authorization ?? '' },
    });
    const rows = (await answer.json()) as Array<Record<string, unknown> & { eventId: string; sale: object }>;
    if (path.includes('event=sales')) {
      for (const row of rows) {
        if (!known.includes(row.eventId)) known.push(row.eventId);
        const [currency, amount] = AMOUNTS[known.indexOf(row.eventId)] ?? [null, 0];
        row.sale = { ...row.sale, currency, amount };
        delete row.saleAmount;
        // All on one day of one link, so that only the currency separates them.
        row.link = { ...(row.link as object), id: 'link_one' };
      }
    }
    response.writeHead(answer.status, { date: answer.headers.get('date') ?? '', 'content-type': 'application/json' });
    response.end(JSON.stringify(rows));
  });
  const front = await listening(server);
  await place.config(
    `sources: { main: { baseUrl: "http://127.0.0.1:${front}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 40d } }
sinks: { warehouse: { type: postgres }, lake: { type: parquet, path: ./data/lake } }
http: { port: ${port}, token: ${TOKEN} }
state: { url: "${url}" }\n`,
  );
  expect(await place.run(['sync', '--config', 't.yaml'])).toMatchObject({ code: 0 });
  return () => server.close();
});

/** The sums of a query, by currency. */
function sums(rows: ReadonlyArray<Record<string, unknown>>, figure: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const row of rows) {
    const currency = String(row.sale_currency);
    found[currency] = Number(((found[currency] ?? 0) + Number(row[figure])).toFixed(3));
  }
  return found;
}

describe('amounts', () => {
  it('are correct in every query of docs/warehouse.md', async () => {
    const adding = docsSql().filter((sql) => /sum\((e\.)?(sale_amount|revenue)\)/.test(sql));
    expect(adding).toHaveLength(1);
    for (const sql of adding) {
      const rows = await db.query({ text: sql });
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(Object.keys(REVENUE)).toContain(String(row.sale_currency));
    }
  });

  it('are correct in every query of docs/lake.md', async () => {
    const [, sql = ''] =
      /^```sql\n((?:(?!```).)*sum\(sale_amount\).*?)^```$/ms.exec(readFileSync('docs/lake.md', 'utf8')) ?? [];
    const rows = await queryDuckdb(sql.replaceAll('data/lake', join(place.dir, 'data/lake')));
    expect(sums(rows, 'minor_units')).toEqual(MINOR_UNITS);
  });

  it('are correct in the control room’s top links', async () => {
    const room = place.start(['start', '--config', 't.yaml']);
    await room.saw(/http:\/\/127\.0\.0\.1:\d+/);
    const answer = await fetch(`http://127.0.0.1:${port}/api/links/top?by=sales&from=40d`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { links } = (await answer.json()) as { links: Array<Record<string, unknown>> };
    expect(links).toMatchObject([
      {
        linkId: 'link_one',
        sales: AMOUNTS.length,
        revenue: Object.entries(REVENUE)
          .sort(([a], [b]) => (a === 'null' ? 1 : b === 'null' ? -1 : a.localeCompare(b)))
          .map(([currency, amount]) => ({ currency: currency === 'null' ? null : currency, amount })),
      },
    ]);
    room.child.kill('SIGTERM');
    await room.done;
  });
});
