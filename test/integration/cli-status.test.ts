import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { longLines } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { plain, runOnTerminal } from '../support/pty.ts';

const { place, sandbox, db, tributary } = await commandsOn(
  { rows: { clicks: 40, leads: 10, sales: 10 }, days: 20 },
  {
    source: 'a-source-with-a-long-name',
    rest: { sinks: { warehouse: { type: 'postgres' }, 'a-second-warehouse': { type: 'postgres', schema: 'second' } } },
  },
);

beforeAll(async () => expect((await tributary('sync')).code).toBe(0));

const status = async (): Promise<Record<string, unknown>> =>
  JSON.parse((await tributary('status', '--json')).stdout) as Record<string, unknown>;

describe('status', () => {
  it('fits 80 columns with any names, and drops optional parts', async () => {
    const { code, stdout, stderr } = await tributary('status');
    expect([code, stderr, longLines(stdout)]).toEqual([0, '', []]);
    expect(stdout).toMatch(/^stream +(since +)?complete through +(newest +)?(lag +)?(last run +)?sink$/m);
    expect(stdout.match(/^a-source-with-a-long-name\/\w+ \S+ +\d{4}-\d\d-\d\d {2}█+ {2}now$/gm)).toHaveLength(6);
    expect(stdout).toMatch(/^a-source-with-a-long-name: \d+ requests by runs of the last hour, \d+\.\d% of 200\/s$/m);
  });

  it('shows a gap and uncertified time in the bar, and says where', async () => {
    // The tenth day of sales was never read, and no time of the leads is certified.
    await db.query({
      text: `
        delete from tributary.windows where sink = 'warehouse' and stream <> 'clicks';
        insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, run_id)
        select c.source, c.stream, c.sink, w.start_at, w.end_at, w.state, 0, 'test' from tributary.cursors c,
          lateral (values (c.since, now() - interval '10 days', 'certified'),
            (now() - interval '10 days', now() - interval '9 days', 'uncertified'),
            (now() - interval '9 days', now() - interval '10 minutes', 'certified')) as w (start_at, end_at, state)
        where c.sink = 'warehouse' and (c.stream = 'leads' or (c.stream = 'sales' and w.state = 'certified'))`,
    });
    const { stdout } = await tributary('status');
    const barOf = (stream: string): string => new RegExp(`/${stream} warehouse .*`).exec(stdout)?.[0] ?? '';
    expect(barOf('sales')).toMatch(/█+·+█+/);
    expect(barOf('leads')).toMatch(/█+▒+█+/);
    expect(barOf('clicks')).not.toMatch(/[·▒]/);
    expect(stdout.replace(/\n {2}/g, ' ')).toMatch(
      /sales: 1 gap in warehouse, the first from \d{4}-\d\d-\d\d \d\d:\d\d\S* to \S+ \S+ UTC \(exclusive\): the next sync reads it/,
    );
    expect(longLines(stdout)).toEqual([]);
    const { streams } = (await status()) as {
      streams: Array<{ stream: string; sink: string; coverage: Array<{ state: string }> }>;
    };
    const sales = streams.find(({ stream, sink }) => stream === 'sales' && sink === 'warehouse');
    expect(sales?.coverage.map(({ state }) => state)).toEqual(['certified', 'gap', 'certified', 'open']);
  });

  it('shows when the worker runs next, and why a stream is parked', async () => {
    await db.query({
      text: `
        create table if not exists tributary.schedules (source text, stream text, plan text, next_run_at timestamptz, primary key (source, stream));
        create table if not exists tributary.parked (source text, stream text, fingerprint text, reason text, next_step text,
          since timestamptz default now(), next_probe_at timestamptz, primary key (source, stream));
        insert into tributary.schedules (source, stream, plan, next_run_at) values ('a-source-with-a-long-name', 'clicks', 'every', '2030-01-02T03:04:05Z');
        insert into tributary.parked (source, stream, fingerprint, reason, next_step, next_probe_at)
          values ('a-source-with-a-long-name', 'leads', 'f', 'the plan is too low', 'upgrade it', now())`,
    });
    const { stdout } = await tributary('status');
    const text = stdout.replace(/\n {2}/g, ' ');
    // Once for two sinks.
    expect(text.match(/a-source-with-a-long-name\/clicks: next run by the worker 2030-01-02 03:04$/gm)).toHaveLength(1);
    expect(text).toContain('a-source-with-a-long-name/leads: parked: the plan is too low\n');
    expect(text).toMatch(/a-source-with-a-long-name\/leads: parked since \S+ \S+, next try \S+ \S+\n/);
    expect(text).toContain('a-source-with-a-long-name/leads: next: upgrade it\n');
    // A stopped worker leaves its schedule behind.
    await db.query({
      text: `update tributary.runs set started_at = started_at - interval '1 hour';
        update tributary.schedules set next_run_at = now() - interval '5 min'`,
    });
    expect((await tributary('status')).stdout.replace(/\n {2}/g, ' ')).toMatch(
      /clicks: was due \S+ \S+, but no worker is running it: start one with tributary start\n/,
    );
  });

  it('shows a refused stream as parked without a worker too', async () => {
    await db.query({ text: 'delete from tributary.parked; delete from tributary.schedules' });
    sandbox.service.faults.add({
      status: 403,
      message: 'Upgrade to the Business plan.',
      match: { event: 'sales' },
      times: 1000,
    });
    expect((await tributary('sync', 'sales')).code).toBe(3);
    sandbox.service.faults.clear();
    const { streams } = (await status()) as { streams: Array<{ stream: string; parked: { reason: string } | null }> };
    const reasons = streams.map(({ stream, parked }) => `${stream} ${parked?.reason ?? 'works'}`);
    expect(reasons.filter((text) => text.startsWith('sales'))[0]).toMatch(/^sales .*Upgrade to the Business plan/);
    expect(reasons.filter((text) => text === 'clicks works')).toHaveLength(2);
  });

  it('--json has exactly the fields that docs/json-schema.json describes', async () => {
    expect([...new Set(pathsOf(await status()))].sort()).toEqual(describedPaths(SCHEMA.$defs.status).sort());
  });

  it('on a terminal is the same, and --watch clears the screen unless NO_COLOR is set', async () => {
    const { text } = await runOnTerminal(place, ['status', '--config', 't.yaml']);
    expect(longLines(plain(text))).toEqual([]);
    expect(plain(text)).toMatch(/^stream +(since +)?complete through /);
    const watch = ['status', '--watch', '--config', 't.yaml'];
    const typed = [{ after: 'times in UTC', type: '\x03' }];
    const coloured = await runOnTerminal(place, watch, { typed });
    expect([coloured.code, coloured.text.includes('\x1b[2J')]).toEqual([0, true]);
    const narrow = await runOnTerminal(place, watch, {
      typed: [
        { after: 'times in UTC', resize: 60 },
        { after: 'times in UTC', type: '\x03' },
      ],
    });
    const [, wide = '', after = ''] = narrow.text.split('\x1b[2J');
    expect([longLines(plain(wide), 80), longLines(plain(after), 60)]).toEqual([[], []]);
    expect(longLines(plain(wide), 60)).not.toEqual([]);
    const bare = await runOnTerminal(place, watch, { typed, env: { NO_COLOR: '1' } });
    expect([bare.code, bare.text.includes('\x1b[2J')]).toEqual([0, false]);
  });
});

/** `streams[].lastRun.id`: every path that has a value. A null is a leaf, and so is an empty list. */
function pathsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : value.flatMap((inner) => pathsOf(inner, `${path}[]`));
  if (typeof value !== 'object' || value === null) return value === null && NULLABLE.has(path) ? [] : [path];
  return Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, path === '' ? key : `${path}.${key}`));
}

interface Described {
  properties?: Record<string, Described>;
  items?: Described;
  anyOf?: Described[];
}
const SCHEMA = JSON.parse(readFileSync('docs/json-schema.json', 'utf8')) as { $defs: { status: Described } };

/** The same of a schema. `error` is null when a command succeeds. */
function describedPaths({ properties, items, anyOf = [] }: Described, path = ''): string[] {
  const [object] = anyOf.filter((type) => type.properties);
  if (object && path !== 'error') return describedPaths(object, path);
  if (items) return describedPaths(items, `${path}[]`);
  if (!properties) return [path];
  return Object.entries(properties).flatMap(([key, inner]) =>
    describedPaths(inner, path === '' ? key : `${path}.${key}`),
  );
}

/** Where an object is null, another stream of the same status shows its fields. */
const NULLABLE = new Set(['streams[].parked', 'streams[].lastRun']);
