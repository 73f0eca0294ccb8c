import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ConfigError,
  type ConfigInput,
  createTributary,
  RetryLater,
  StopStream,
  type Tributary,
} from '../../src/index.ts';
import { freshPlace, startProcess } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

let sandbox: Sandbox;
let database: TestDatabase;
beforeAll(async () => {
  [sandbox, database] = await Promise.all([
    smallSandbox({ rows: { clicks: 30, leads: 20, sales: 10 }, days: 10 }),
    freshDatabase(),
  ]);
});
afterAll(() => database.drop());

describe('docs/library.md', () => {
  it('has an example that runs unmodified, in a project with the package', async () => {
    const [, example = ''] = /^```ts\n(.*?)^```$/ms.exec(await readFile('docs/library.md', 'utf8')) ?? [];
    const place = await freshPlace();
    const tsc = (...files: string[]) => {
      const flags = [
        '--noEmit',
        '--strict',
        '--noUncheckedIndexedAccess',
        '--module',
        'nodenext',
        '--target',
        'es2023',
      ];
      const types = ['--types', 'node', '--typeRoots', resolve('node_modules/@types')];
      return startProcess(resolve('node_modules/.bin/tsc'), [...flags, ...types, ...files], place.dir, {
        PATH: process.env.PATH ?? '',
      }).done;
    };
    await mkdir(join(place.dir, 'node_modules'));
    await symlink(resolve('.'), join(place.dir, 'node_modules/tributary-sync'));
    await writeFile(join(place.dir, 'example.mts'), example);
    expect(await tsc('example.mts')).toMatchObject({ code: 0, text: '' });
    await writeFile(join(place.dir, 'wrong.mts'), example.replace('plan:', 'paln:'));
    expect((await tsc('wrong.mts')).text).toMatch(/'paln' does not exist|'paln'/);
    // It is also valid JavaScript.
    await writeFile(join(place.dir, 'example.mjs'), example);
    const { code, stdout, stderr } = await startProcess(process.execPath, ['example.mjs'], place.dir, {
      TRIBUTARY_BASE_URL: sandbox.baseUrl,
      TRIBUTARY_API_KEY: sandbox.apiKey,
      DATABASE_URL: database.url,
    }).done;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^main\/clicks: 30 new\nmain\/leads: 20 new\nmain\/sales: 10 new\nclicks is complete through 20/,
    );
  });

  it('names every method', async () => {
    const verbs = [...(await readFile('docs/library.md', 'utf8')).matchAll(/^\| `(\w+)\(/gm)].map(([, verb]) => verb);
    expect(verbs).toEqual(Object.keys(tributary()));
  });
});

const tributary = (apiKey = sandbox.apiKey): Tributary =>
  createTributary({
    log: silentLog,
    config: {
      sources: { main: { baseUrl: sandbox.baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 200 } },
      state: { url: database.url },
    },
  });

describe('the library', () => {
  const leads = { source: 'main', stream: 'leads', sink: 'warehouse' } as const;

  it('throws faults of the config immediately', () => {
    expect(() =>
      createTributary({ config: { sources: { main: { plan: 'gold' } } } as unknown as ConfigInput }),
    ).toThrow(ConfigError);
    expect(() => createTributary({ config: 'no/such.yaml' })).toThrow('there is no config file no/such.yaml');
  });

  it('returns a refusal as an outcome, and does not throw', async () => {
    const outcomes = await tributary('wrong').sync({ streams: ['sales'] });
    expect(outcomes.map(({ stream, fault }) => [stream, fault instanceof StopStream])).toEqual([['sales', true]]);
  });

  it('moves cursors, and the next sync reads again', async () => {
    const { status, moveCursor, resetCursor, sync, runs } = tributary();
    const back = new Date(Date.now() - 3 * 86_400_000);
    await moveCursor(leads, back);
    const through = async () => (await status()).find(({ stream }) => stream === 'leads')?.completeThrough;
    expect(await through()).toBe(back.toISOString());
    await expect(moveCursor(leads, new Date())).rejects.toThrow(ConfigError);
    await expect(moveCursor(leads, 'soon')).rejects.toThrow('not a date');
    await resetCursor(leads);
    expect(await through()).toBeNull();
    const [outcome] = await sync({ streams: ['leads'] });
    expect(outcome?.report).toMatchObject({ state: 'done', tally: { new: 0 } });
    expect((await runs({ stream: 'leads', limit: 1 })).map(({ state }) => state)).toEqual(['done']);
  });

  it('refuses the second of two syncs of one stream', async () => {
    sandbox.service.faults.add({ delayMs: 1000, times: 1 });
    const [first, second] = await Promise.all([
      tributary().sync({ streams: ['clicks'] }),
      tributary().sync({ streams: ['clicks'] }),
    ]);
    const faults = [...first, ...second].flatMap(({ fault }) => fault ?? []);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toBeInstanceOf(RetryLater);
  });

  it('checks everything, and forgets', async () => {
    expect((await tributary().doctor()).filter(({ level }) => level === 'fault')).toEqual([]);
    expect(await tributary().forget({ source: 'main', kind: 'customer', id: 'nobody' })).toMatchObject({
      'attribution.leads': 0,
    });
  });
});
