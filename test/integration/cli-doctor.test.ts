import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { freshPlace, longLines } from '../support/cli.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { startSandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { plain, runOnTerminal } from '../support/pty.ts';
import { smallSandbox } from '../support/sandbox.ts';

const KEY = 'canary-key-4711';
const ROLE = `doctor_${process.pid}`;
const [place, sandbox, database] = await Promise.all([
  freshPlace(),
  smallSandbox({ apiKey: KEY, rows: { clicks: 5, leads: 5, sales: 5 } }),
  forThisFile(emptyEngine()),
]);
const { db } = database;

interface Setup {
  baseUrl?: string;
  url?: string | undefined;
  key?: string;
  plan?: string;
  /** A line of YAML. */
  sinks?: string;
  env?: Record<string, string>;
}

const written = ({ baseUrl = sandbox.baseUrl, plan = 'pro', url, sinks = '' }: Setup): Promise<string> =>
  place.config(
    `sources: { main: { baseUrl: "${baseUrl}", apiKey: "\${KEY}", plan: ${plan} } }\n${url ? `state: { url: "${url}" }\n` : ''}${sinks}`,
  );

type Line = { level: string; subject: string; says: string; fix?: string };

async function doctor(setup: Setup = {}): Promise<{ code: number | null; findings: Line[]; faults: string[] }> {
  await written({ url: database.url, ...setup });
  // Trusted certificates are fixed when a process starts.
  const run = setup.env ? place.run : place.call;
  const { code, stdout, text } = await run(['doctor', '--json', '--config', 't.yaml'], {
    KEY: setup.key ?? KEY,
    ...setup.env,
  });
  expect(text).not.toContain('canary');
  const { findings } = JSON.parse(stdout) as { findings: Line[] };
  // Every fault comes with a remedy.
  for (const { level, fix, says } of findings) if (level === 'fault') expect(fix, says).toBeTruthy();
  return {
    code,
    findings,
    faults: findings.filter(({ level }) => level === 'fault').map((one) => `${one.subject}: ${one.says}`),
  };
}

const schemas = (): Promise<object[]> =>
  db.query({ text: `select nspname from pg_namespace where nspname !~ '^pg_' order by 1` });

describe('doctor', () => {
  it('passes with one request, and leaves nothing behind', async () => {
    const [before, asked] = [await schemas(), sandbox.service.log.entries.length];
    const { code, findings, faults } = await doctor();
    expect({ code, faults }).toMatchObject({ code: 0, faults: [] });
    expect(new Set(findings.map(({ subject }) => subject))).toEqual(
      new Set(['config', 'Node', 'state', 'sink warehouse', 'queue', 'source main']),
    );
    expect(await schemas()).toEqual(before);
    expect(sandbox.service.log.entries.length - asked).toBe(1);
    expect((await place.files()).dir).toEqual(['t.yaml']);
  });

  it('passes before the first sync with a sink of each type', async () => {
    const sinks = `sinks: { lake: { type: parquet, path: data/lake }, tables: { type: iceberg, warehouse: data/iceberg } }`;
    const { code, findings } = await doctor({ sinks });
    expect([code, findings.filter(({ level }) => level === 'fault')]).toEqual([0, []]);
    expect(findings.map(({ subject }) => subject)).toEqual(expect.arrayContaining(['sink lake', 'sink tables']));
    await rm(join(place.dir, 'data'), { recursive: true });
  });

  it('starts an embedded Postgres as a check, and removes it again', async () => {
    const { code, findings } = await doctor({ url: undefined });
    expect(code).toBe(0);
    expect(findings.map(({ says }) => says)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^embedded Postgres in \.tributary\/ answers \(Postgres \d+/),
        expect.stringMatching(/GiB free for \.tributary\/$/),
      ]),
    );
    expect((await place.files()).dir).toEqual(['t.yaml']);
  });

  it('colours a terminal unless NO_COLOR is set, within 80 columns; a pipe never', async () => {
    await written({ url: database.url });
    const args = ['doctor', '--config', 't.yaml'];
    const coloured = await runOnTerminal(place, args, { env: { KEY } });
    expect([coloured.code, longLines(plain(coloured.text))]).toEqual([0, []]);
    expect(coloured.text).toContain('\x1b[32mok  \x1b[0m  state: ');
    expect((await runOnTerminal(place, args, { env: { KEY, NO_COLOR: '1' } })).text).not.toContain('\x1b');
    const { stdout } = await place.call(args, { KEY });
    expect(stdout).not.toContain('\x1b');
    expect(stdout).toMatch(/^ok {4}state: Postgres at .*\n(.*\n)*\nall is well\n$/m);
  });

  it('names a service that does not sort, right after the first sync', async () => {
    const [mixed, fresh] = [
      await smallSandbox({ apiKey: KEY, rows: { clicks: 500, leads: 5, sales: 5 }, traits: { sortOrder: 'mixed' } }),
      await freshDatabase(),
    ];
    const setup = { baseUrl: mixed.baseUrl, url: fresh.url };
    await written(setup);
    expect((await place.call(['sync', 'clicks', '--config', 't.yaml'], { KEY })).code).toBe(4);
    const { findings } = await doctor(setup);
    await fresh.drop();
    expect(findings.filter(({ level }) => level !== 'ok')).toEqual([
      expect.objectContaining({
        says: expect.stringMatching(/^clicks: the service does not sort its answers as asked/),
        fix: expect.stringContaining('not certified'),
      }),
    ]);
  });

  it('exits with 3 for a refused key', async () => {
    const { code, faults } = await doctor({ key: 'wrong' });
    expect([code, faults]).toEqual([3, [expect.stringMatching(/^source main: the service answered 401/)]]);
  });

  it('exits with 4 for an unreachable service, and checks the rest', async () => {
    const gone = await startSandbox({ rows: { clicks: 1, leads: 1, sales: 1 } });
    await gone.close();
    const { code, findings, faults } = await doctor({ baseUrl: gone.baseUrl });
    expect([code, faults]).toEqual([4, [expect.stringMatching(/^source main: .*nothing listens there/)]]);
    expect(findings.some(({ subject, level }) => subject === 'sink warehouse' && level === 'ok')).toBe(true);
  });

  it('exits with 4 for an unreachable database, and checks the service', async () => {
    const { code, findings, faults } = await doctor({ url: 'postgresql://nobody@127.0.0.1:1/none' });
    expect(code).toBe(4);
    // One fault, although the sink and the queue share the database.
    expect(faults).toEqual([expect.stringMatching(/^state: Postgres at 127\.0\.0\.1:1 cannot be reached/)]);
    expect(findings.some(({ subject, level }) => subject === 'source main' && level === 'ok')).toBe(true);
  });

  it('exits with 2 for a config with faults, in one finding', async () => {
    const { code, faults } = await doctor({ plan: 'gold' });
    expect([code, faults]).toEqual([2, [expect.stringContaining('t.yaml:1:')]]);
  });

  it('notes a limit below our pace and a wrong clock, and does not fail', async () => {
    const now = Date.now;
    const off = await smallSandbox({
      apiKey: KEY,
      rows: { clicks: 5 },
      requestsPerSecond: 3,
      now: () => now() + 3_600_000,
    });
    const { code, findings } = await doctor({ baseUrl: off.baseUrl, plan: 'advanced' });
    expect(code).toBe(0);
    const notes = findings.filter(({ level }) => level === 'note').map(({ says }) => says);
    expect(notes).toEqual([
      'paced at 8/s; the service reports a limit of 3',
      expect.stringMatching(/^our clock is 3[56]\d\d s behind/),
    ]);
  });
});

describe('doctor and privileges', () => {
  const asRole = (): string => {
    const url = new URL(database.url);
    url.username = ROLE;
    url.password = 'canary-password';
    return url.href;
  };
  beforeAll(async () => {
    const name = new URL(database.url).pathname.slice(1);
    await db.query({
      text: `create role ${ROLE} login password 'canary-password'; revoke create on database "${name}" from public`,
    });
  });
  afterAll(async () => {
    await db.query({ text: `drop owned by ${ROLE}; drop role ${ROLE}` });
  });

  it('names the missing privilege, its object, and the grant that gives it', async () => {
    const { code, findings, faults } = await doctor({ url: asRole() });
    expect(code).toBe(2);
    expect(faults[0]).toMatch(/^state: user doctor_\d+ may not create tables in database "test_/);
    expect(faults[1]).toMatch(/^sink warehouse: user "doctor_\d+" is not allowed to do this/);
    const fix = findings.find(({ subject, level }) => subject === 'state' && level === 'fault')?.fix ?? '';
    await db.query({ text: fix });
    expect(await doctor({ url: asRole() })).toMatchObject({ code: 0, faults: [] });
  });

  it('names a table that another role owns', async () => {
    await db.query({
      text: `create schema attribution; create table attribution.clicks (n int); grant all on schema attribution to ${ROLE}`,
    });
    const { code, faults } = await doctor({ url: asRole() });
    expect([code, faults]).toEqual([2, ['sink warehouse: may not write attribution.clicks']]);
    await db.query({ text: 'drop schema attribution cascade' });
  });

  it('notes an outdated state; one of a newer version is a fault', async () => {
    await migrate(db, MIGRATIONS, { schema: 'tributary' });
    expect(await doctor()).toMatchObject({ code: 0, faults: [] });
    await db.query({
      text: `insert into tributary.migrations (version, name, checksum) values (999, 'of tomorrow', 'x')`,
    });
    const { code, faults } = await doctor();
    expect([code, faults]).toEqual([
      2,
      [expect.stringContaining('was written by a newer tributary, which has migration 999')],
    ]);
  });
});

describe('doctor and TLS', () => {
  it('reports when the certificate expires, and refuses an untrusted one', async () => {
    const [key, cert] = [join(place.dir, 'key.pem'), join(place.dir, 'cert.pem')];
    const args = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=localhost -addext subjectAltName=DNS:localhost`;
    execFileSync('openssl', [...args.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) =>
      response.end('[]'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `https://localhost:${(server.address() as AddressInfo).port}`;
    const fresh = await freshDatabase();
    const trusted = await doctor({ baseUrl, url: fresh.url, env: { NODE_EXTRA_CA_CERTS: cert } });
    expect(trusted.code).toBe(0);
    expect(trusted.findings).toContainEqual(
      expect.objectContaining({ level: 'note', says: 'TLSv1.3, certificate valid for 8 more days' }),
    );
    const { code, faults } = await doctor({ baseUrl, url: fresh.url });
    expect([code, faults]).toEqual([4, [expect.stringMatching(/its TLS certificate is not trusted/)]]);
    server.closeAllConnections();
    server.close();
    await fresh.drop();
  });
});
