import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, describe, expect, it } from 'vitest';
import { freshPlace, type Place } from '../support/cli.ts';
import { openEngine } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { sandboxWith, smallSandbox, sorted } from '../support/sandbox.ts';

describe('tributary export', () => {
  let place: Place;
  let sandbox: Sandbox;

  beforeAll(async () => {
    [place, sandbox] = await Promise.all([freshPlace(), smallSandbox({ rows: { clicks: 2300 } })]);
    await place.config(configFor(sandbox));
  });

  const configFor = ({ baseUrl, apiKey }: Sandbox): string =>
    `sources: { main: { baseUrl: "${baseUrl}", apiKey: ${apiKey}, plan: enterprise, requestsPerSecond: 200 } }`;
  const run = (stream: string, out: string, ...more: string[]) =>
    place.call(['export', stream, '--config', 't.yaml', '--from', '40d', '--to', 'now', '--out', out, ...more]);
  const read = (name: string): Promise<string> => readFile(join(place.dir, name), 'utf8');
  const jsonLines = (text: string): Array<Record<string, unknown>> =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('writes every event once, oldest first, the same in each format, and leaves no state', async () => {
    const parquet = await run('clicks', 'c.parquet');
    expect(parquet.code).toBe(0);
    // On a slow machine a progress line every five seconds, and nothing else.
    expect(parquet.stderr.replace(/^[█░]{20} .*\n/gm, '')).toBe('');
    expect(parquet.stdout).toMatch(
      /^2,300 events in c\.parquet, requests: \d\nrange: .*\ncomplete as the service shows it now, but not certified:\nnote: events since/,
    );
    const past = await run('clicks', 'past.ndjson', '--to', '1d');
    expect(past.stdout).toMatch(/\ncertified: every event of the range is there, each once\n/);
    expect((await run('clicks', 'c.ndjson')).code).toBe(0);
    expect((await run('clicks', 'c.csv')).code).toBe(0);
    expect((await place.files()).dir.sort()).toEqual(['c.csv', 'c.ndjson', 'c.parquet', 'past.ndjson', 't.yaml']);

    const lines = jsonLines(await read('c.ndjson'));
    const ids = lines.map((line) => String(line.event_id));
    expect(sorted(ids)).toEqual(sorted(sandbox.service.ids('clicks')));
    const times = lines.map((line) => String(line.timestamp));
    expect(times).toEqual(sorted(times));
    const connection = await (await DuckDBInstance.create()).connect();
    const column = async (file: string, name: string): Promise<unknown[]> => {
      const reader = file.endsWith('.csv') ? 'read_csv' : 'read_parquet';
      const text = `select ${name} from ${reader}('${join(place.dir, file)}')`;
      return (await connection.runAndReadAll(text)).getRowsJson().map(([value]) => value);
    };
    for (const file of ['c.parquet', 'c.csv']) {
      expect(await column(file, 'event_id')).toEqual(ids);
      expect(await column(file, 'epoch_ms("timestamp")')).toEqual(times.map((time) => String(Date.parse(time))));
      expect(await column(file, 'link_url')).toEqual(lines.map((line) => line.link_url));
    }
    // JSON values are JSON there, not strings.
    const tags = lines.map(({ link_tags: list }) => (list === null ? null : JSON.stringify(list)));
    expect(new Set(tags).size).toBeGreaterThan(1);
    expect(await column('c.parquet', 'link_tags::varchar')).toEqual(tags);
    const [meta] = (
      await connection.runAndReadAll(
        `select decode(key) || '=' || decode(value) from parquet_kv_metadata('${join(place.dir, 'c.parquet')}') order by 1`,
      )
    ).getRowsJson();
    expect(meta).toEqual(['certified=false']);
  });

  it('puts an undeclared field in the same column as the tables', async () => {
    const [engine, odd] = await Promise.all([
      openEngine(),
      sandboxWith(['unknownFields'], { rows: { clicks: 60, leads: 20, sales: 10 }, days: 3 }),
    ]);
    try {
      await place.config(`${configFor(odd)}\nstate: { url: "${engine.url}" }`, 'odd.yaml');
      const exported = async (out: string) => {
        const range = ['--from', '40d', '--to', 'now', '--out', out];
        expect((await place.call(['export', 'clicks', '--config', 'odd.yaml', ...range])).code).toBe(0);
        return jsonLines(await read(out));
      };
      expect((await exported('before.ndjson')).every((line) => !('click_asn' in line))).toBe(true);
      expect((await place.call(['sync', 'clicks', '--config', 'odd.yaml'])).code).toBe(0);
      const columns = await engine.db.query<{ name: string }>({
        text: `select name from tributary.columns where stream = 'clicks'`,
      });
      expect(columns.map(({ name }) => name)).toContain('click_asn');
      const after = await exported('after.ndjson');
      for (const { name } of columns) expect(after.every((line) => name in line)).toBe(true);
      const tables = await engine.db.query<{ id: string; asn: number | null }>({
        text: 'select event_id as id, click_asn as asn from attribution.clicks',
      });
      expect(new Map(after.map((line) => [line.event_id, line.click_asn]))).toEqual(
        new Map(tables.map(({ id, asn }) => [id, asn])),
      );
      expect(after.some((line) => line.click_asn !== null)).toBe(true);
    } finally {
      await engine.close();
    }
  });

  it('narrows by filters, and pipes', async () => {
    const args = ['export', 'leads', '--config', 't.yaml', '--from', '40d', '--to', 'now', '--out', '-'];
    const piped = await place.run([...args, '--filter', 'country=US']);
    const countries = jsonLines(piped.stdout).map((line) => line.click_country);
    expect(countries.length).toBeGreaterThan(10);
    expect(new Set(countries)).toEqual(new Set(['US']));
    expect(piped.stderr).toMatch(/events in standard output/);
    const json = await run('leads', 'l.csv', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      out: 'l.csv',
      certified: false,
      doubts: [],
      rows: 300,
      rejected: 0,
      changed: 0,
    });
  });

  it('escapes cells that a spreadsheet would run, unless disabled', async () => {
    const trap = '=HYPERLINK("https://evil.test","click")';
    sandbox.service.add('sales', {
      event: 'sale',
      timestamp: new Date(Date.now() - 3_600_000).toISOString(),
      eventId: 'trap',
      eventName: trap,
      click: { id: 'c1', city: '\t@SUM(A1)' },
    });
    await run('sales', 's.csv');
    await run('sales', 'raw.csv', '--keep-formulas');
    const line = (text: string): string => text.split('\n').find((each) => each.includes('trap')) ?? '';
    expect(line(await read('s.csv'))).toContain(`"'${trap.replaceAll('"', '""')}"`);
    expect(line(await read('s.csv'))).toContain(`'\t@SUM(A1)`);
    expect(line(await read('raw.csv'))).toContain(`,"${trap.replaceAll('"', '""')}"`);
    // A negative number stays a number.
    expect(await read('s.csv')).not.toMatch(/,'-\d/);
  });

  it('refuses invalid requests, and touches nothing', async () => {
    await writeFile(join(place.dir, 'mine.csv'), 'mine');
    await mkdir(join(place.dir, 'folder.csv'));
    const refusals: Array<[args: string[], text: RegExp]> = [
      [['clicks', 'mine.csv'], /mine\.csv exists already\nnext: choose another --out, or add --force/],
      [['clicks', 'folder.csv', '--force'], /--out folder\.csv: it is a folder\nnext: name a file/],
      [['clicks', 'x.xlsx'], /the file extension sets the format.*\nnext: use \.parquet, \.csv, \.ndjson/],
      [['clicks', 'no/such/x.csv'], /the folder no\/such does not exist/],
      [['clicks', 'x.csv', '--filter', 'contry=DE'], /no parameter "contry": did you mean country\?/],
      [['clicks', 'x.csv', '--filter', 'DE'], /--filter "DE" is not NAME=VALUE/],
      [['click', 'x.csv'], /unknown stream: click/],
    ];
    const before = (await place.files()).dir;
    for (const [[stream = '', out = '', ...more], text] of refusals) {
      const { code, stderr } = await run(stream, out, ...more);
      expect([code, stderr]).toEqual([2, expect.stringMatching(text)]);
    }
    expect((await place.files()).dir).toEqual(before);
    expect(await read('mine.csv')).toBe('mine');
    expect((await run('clicks', 'mine.csv', '--force')).code).toBe(0);
  });

  it('leaves no partial file when interrupted or refused', async () => {
    const before = (await place.files()).dir;
    sandbox.service.faults.add({ status: 403, when: ({ query }) => query.event === 'leads', times: 1000 });
    expect((await run('leads', 'refused.csv')).code).toBe(3);
    sandbox.service.faults.clear();
    sandbox.service.faults.add({ hang: true });
    const hanging = place.start([
      'export',
      'clicks',
      '--config',
      't.yaml',
      '--from',
      '9d',
      '--to',
      'now',
      '--out',
      'i.csv',
    ]);
    while (sandbox.service.faults.pending > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    hanging.child.kill('SIGINT');
    expect((await hanging.done).code).toBe(130);
    expect((await place.files()).dir).toEqual(before);
  });
});
