import { hostname, userInfo } from 'node:os';
import { beforeAll, expect, it } from 'vitest';
import type { AuditRecord } from '../../src/cursor/audit.ts';
import { quarantine } from '../../src/cursor/quarantine.ts';
import { commandsOn } from '../support/commands.ts';

const { db, tributary } = await commandsOn(
  { rows: { clicks: 10, leads: 10, sales: 10 }, days: 5 },
  { settings: { since: '10d' } },
);

beforeAll(async () => {
  expect((await tributary('sync', 'leads')).code).toBe(0);
  await quarantine(
    db,
    { source: 'main', stream: 'leads', runId: '20261114T120000-00000001' },
    [1, 2, 3].map((n) => ({ record: { event: 'lead', eventId: `bad ${n}` }, reason: 'no time' })),
  );
});

const entries = async (): Promise<AuditRecord[]> =>
  (JSON.parse((await tributary('audit', '--json', '--limit', '500')).stdout) as { entries: AuditRecord[] }).entries;

/** The entries that a command adds to the trail, oldest first. */
async function addedBy(...args: string[]): Promise<AuditRecord[]> {
  const before = await entries();
  await tributary(...args);
  const after = await entries();
  return after.slice(0, after.length - before.length).reverse();
}

it('every command that changes something records who, what, when and from where', async () => {
  const [id = ''] = (
    await db.query<{ id: string }>({ text: 'select id::text from tributary.quarantine order by id' })
  ).map((row) => row.id);
  const range = ['--from', '3d', '--to', '1d'];
  const queued = await addedBy('backfill', 'sales', ...range, '--queue', '--force');
  const [backfill] = await db.query<{ id: string }>({ text: 'select id from tributary.backfills' });
  for (const [args, action, target, detail] of [
    [['sync', 'leads', 'sales'], 'sync.start', 'main/leads, main/sales', {}],
    [['backfill', 'sales', ...range], 'backfill.start', 'main/sales', { force: false }],
    [['backfills', 'pause', backfill?.id], 'backfill.pause', backfill?.id, {}],
    [['backfills', 'resume', backfill?.id], 'backfill.resume', backfill?.id, {}],
    [['backfills', 'cancel', backfill?.id], 'backfill.cancel', backfill?.id, {}],
    [['verify', 'sales', ...range, '--repair'], 'verification.repair', 'main/sales', {}],
    [['cursor', 'set', 'sales', '--to', '3d'], 'cursor.move', 'main/sales', { sink: 'warehouse', to: '3d' }],
    [['cursor', 'reset', 'sales', '--yes'], 'cursor.reset', 'main/sales', { sink: 'warehouse' }],
    [['quarantine', 'retry', id], 'quarantine.retry', id, { records: 1 }],
    [['quarantine', 'drop', id], 'quarantine.drop', id, { records: 1 }],
    [['quarantine', 'drop', '--all', '--yes'], 'quarantine.drop', null, { records: 2 }],
    [
      ['forget', '--source', 'main', '--customer', 'ada@example.org', '--unseen', '--yes'],
      'customer.forget',
      'main',
      {},
    ],
    [['forget', '--source', 'main', '--everything', '--yes'], 'source.forget', 'main', {}],
  ] as const)
    expect([args, await addedBy(...args.map(String))]).toEqual([
      args,
      [
        {
          id: expect.any(String),
          at: expect.stringMatching(/^20.*Z$/),
          actor: userInfo().username,
          from: hostname(),
          action,
          target,
          detail: expect.objectContaining(detail),
        },
      ],
    ]);
  expect(queued).toMatchObject([{ action: 'backfill.start', target: 'main/sales', detail: { force: true } }]);
  // The trail does not keep the forgotten id.
  expect(JSON.stringify(await entries())).not.toContain('ada@example.org');
});

it('records nothing for read-only commands, and failures as failures', async () => {
  for (const args of [
    ['status'],
    ['runs'],
    ['cursor', 'get'],
    ['forget', '--source', 'main', '--everything', '--dry-run'],
  ])
    expect([args, await addedBy(...args)]).toEqual([args, []]);
  expect(await addedBy('backfills', 'pause', 'nope')).toMatchObject([
    { action: 'backfill.pause', target: 'nope', detail: {} },
    { action: 'backfill.pause', target: 'nope', detail: { failed: expect.stringMatching(/\w/) } },
  ]);
  await tributary('backfill', 'pause', 'n'.repeat(90));
  const { stdout } = await tributary('runs', 'audit');
  expect(stdout).toMatch(/^when +who +what +of/m);
  expect(stdout).toMatch(/ backfill\.pause \(failed\) +n{30}…$/m);
});
