import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { configText } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { type StockPostgres, startStock, stockPostgres } from '../support/servers.ts';

/** A read-only database: doctor reports it, and a sync ends as retryable. */

let place: Place;
let sandbox: Sandbox;
beforeAll(async () => {
  [place, sandbox] = await Promise.all([freshPlace(), smallSandbox({ rows: { clicks: 20, leads: 5, sales: 5 } })]);
});

async function run(command: string, url: string): Promise<{ code: number | null; text: string }> {
  await place.config(configText({ url }, sandbox, { name: 'main' }));
  return place.run([command, '--config', 't.yaml']);
}

async function expectReadOnly(url: string, says: RegExp): Promise<void> {
  const doctor = await run('doctor', url);
  expect(doctor.text).toMatch(says);
  expect(doctor.code, doctor.text).toBe(4);
  const sync = await run('sync', url);
  expect(sync.code, sync.text).toBe(4);
  expect(sync.text).toMatch(/is read-only now/);
  expect(sync.text).toMatch(/next:\s+point the database URL at the primary/);
  expect(sync.text).not.toMatch(/bug|\bat .*\.js/);
}

const BIN = stockPostgres(15);

describe.runIf(BIN)('a hot standby', () => {
  let primary: StockPostgres;
  let standby: StockPostgres;
  beforeAll(async () => {
    primary = await startStock(BIN ?? '');
    standby = await startStock(BIN ?? '', primary);
  });
  afterAll(async () => {
    await standby.close();
    await primary.close();
  });

  it('without the tables of the state', () => expectReadOnly(standby.url, /is a replica, which is read-only/));

  it('with them, as after a failover', async () => {
    expect((await run('sync', primary.url)).code).toBe(0);
    await expectReadOnly(standby.url, /is a replica, which is read-only/);
  });
});

it('a primary that was made read-only', async () => {
  const home = await freshDatabase();
  const db = connect({ url: home.url, max: 1 });
  const name = new URL(home.url).pathname.slice(1);
  await db.query({ text: `alter database "${name}" set default_transaction_read_only = on` });
  await db.close();
  await expectReadOnly(home.url, /is read-only \(default_transaction_read_only\)/);
  await home.drop();
});
