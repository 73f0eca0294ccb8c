import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { freshPlace, longLines, MAIN, type Place, startProcess } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { idsOf, rows, smallSandbox, sorted } from '../support/sandbox.ts';

interface Summary {
  streams: Array<Record<string, unknown> & { stream: string; completeThrough: string | null }>;
  budget: Record<string, { requests: number; perSecond: number }>;
}

/** What a sink creates for any stream: views and reports find all of them. */
const TABLES = ['_days', 'clicks', 'customers', 'leads', 'links', 'sales'];

describe('tributary sync', () => {
  let place: Place;
  let sandbox: Sandbox;
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    [place, sandbox, database] = await Promise.all([freshPlace(), smallSandbox(), freshDatabase()]);
    db = connect({ url: database.url, max: 2 });
    await place.config(config());
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  const source = (extra = ''): string =>
    `{ baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 100, since: 40d${extra} }`;
  const config = (): string => `
sources:
  main: ${source()}
  other: ${source(', streams: { clicks: { filters: { qr: false } }, leads: {} }')}
sinks:
  warehouse: { type: postgres }
  copy: { type: postgres, url: "\${DATABASE_URL}", schema: copy }
state: { url: "\${DATABASE_URL}" }
`;
  const sync = (...args: string[]) =>
    place.run(['sync', '--config', 't.yaml', ...args], { DATABASE_URL: database.url });
  const tables = () =>
    db.query({
      text: `select table_schema || '.' || table_name as name from information_schema.tables
        where table_schema in ('attribution', 'copy') and table_type = 'BASE TABLE' order by 1`,
    });
  const ids = async (table: string, of: string): Promise<string[]> => {
    const text = `select event_id from ${table} where _source = $1`;
    return (await db.query<{ event_id: string }>({ text, values: [of] })).map((row) => row.event_id);
  };

  it('writes one stream of one source into one sink, and nothing else', async () => {
    const { code, stdout, stderr } = await sync('clicks', '--source', 'main', '--sink', 'copy');
    expect([code, stderr]).toEqual([
      0,
      // On a slow machine it reports its progress.
      expect.stringMatching(/^note: other\/clicks: qr is deprecated: use trigger\n(rows: .*\n)*$/),
    ]);
    expect(stdout).toMatch(/^main\/clicks +[\d,]+ +900 +0 +\d+ +\d+ +\d{4}-\d\d-\d\d \d\d:\d\d$/m);
    expect(stdout).toMatch(/^data in {2}Postgres schema copy/m);
    expect(stdout).toMatch(/^state in Postgres at 127\.0\.0\.1:\d+\/test_\w+ · times in UTC$/m);
    expect(stdout).not.toContain('main/leads');
    expect(longLines(stdout)).toEqual([]);
    expect(await tables()).toEqual(TABLES.map((table) => ({ name: `copy.${table}` })));
    for (const table of ['leads', 'sales', 'customers']) {
      expect(await db.query({ text: `select 1 from copy.${table}` })).toEqual([]);
    }
  });

  it('writes everything, with only JSON on standard output', async () => {
    const { code, stdout } = await sync('--json');
    expect(code).toBe(0);
    const { streams, budget } = JSON.parse(stdout) as Summary;
    expect(streams.map(({ source, stream, state }) => `${source}/${stream} ${state}`)).toEqual(
      ['main/clicks', 'main/leads', 'main/sales', 'other/clicks', 'other/leads'].map((name) => `${name} done`),
    );
    for (const { completeThrough } of streams) expect(Date.parse(completeThrough ?? '')).toBeGreaterThan(0);
    // One key, one budget.
    expect(budget).toMatchObject({ main: { perSecond: 100 }, other: { requests: budget.main?.requests } });
    expect(await tables()).toHaveLength(2 * TABLES.length);
    const wanted = sorted(idsOf(await rows(sandbox, { event: 'leads' })));
    for (const name of ['main', 'other']) {
      expect(sorted(await ids('attribution.leads', name))).toEqual(wanted);
      expect(sorted(await ids('copy.leads', name))).toEqual(wanted);
    }
  });

  it('adds and changes no row when run again, although the counters of the links moved', async () => {
    sandbox.service.traits = { volatile: true };
    const [before] = await rows(sandbox, { limit: 1 });
    expect(await rows(sandbox, { limit: 1 })).not.toEqual([before]);
    const { code, stdout } = await sync('--json', '--source', 'main');
    expect(code).toBe(0);
    const { streams } = JSON.parse(stdout) as Summary;
    expect(streams).toHaveLength(3);
    for (const stream of streams) expect(stream).toMatchObject({ state: 'done', new: 0, changed: 0 });
  });

  it('status shows the sink if there are several', async () => {
    const { code, stdout } = await place.run(['status', '--config', 't.yaml', '--source', 'main'], {
      DATABASE_URL: database.url,
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^main\/leads .* copy$/m);
    expect(stdout).toMatch(/^main\/leads .* warehouse$/m);
    expect(stdout).not.toContain('other/');
    expect(stdout).not.toContain('\x1b');
  });

  it('status --watch repeats it until stopped, as one line of JSON each', async () => {
    const watching = place.start(['status', '--config', 't.yaml', '--watch', '--json'], { DATABASE_URL: database.url });
    await watching.saw(/\n.*\n/);
    watching.child.kill('SIGINT');
    const { code, stdout } = await watching.done;
    expect(code).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) expect((JSON.parse(line) as Summary).streams.length).toBeGreaterThan(3);
  });

  it('status --watch ends when its reader closes the pipe', async () => {
    const script = '{ "$NODE" "$MAIN" status --config t.yaml --watch; echo "code $?" >&2; } | head -1';
    const env = { PATH: process.env.PATH ?? '', NODE: process.execPath, MAIN, DATABASE_URL: database.url };
    const { stdout, stderr } = await startProcess('/bin/sh', ['-c', script], place.dir, env).done;
    expect(stdout).toMatch(/^stream +complete through /);
    expect(stderr).toBe('code 0\n');
  });
});
