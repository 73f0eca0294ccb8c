import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { ConfigError, type Fault, RetryLater } from '../../src/model/errors.ts';
import type { Log } from '../../src/model/log.ts';
import { postmasterOf, startChild, temporaryFolder } from '../support/embedded.ts';
import { silentLog } from '../support/silent-log.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let dir: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  dir = folder.dir;
});

afterEach(() => folder.remove());

const open = (options: { attach?: boolean; log?: Log } = {}) => openEmbedded({ dir, log: silentLog, ...options });

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const db = connect({ url });
  try {
    return await db.query({ text });
  } finally {
    await db.close();
  }
}

describe('the embedded Postgres', () => {
  it('initializes, keeps its data, and stops without a trace', async () => {
    const began = Date.now();
    const first = await open();
    const made = Date.now();
    await ask(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const pid = await postmasterOf(dir);
    expect(pid).toBeTypeOf('number');
    await first.close();
    await first.close();
    // Gone from the process table: a zombie would still answer.
    expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH');
    expect((await readdir(dir)).sort()).toEqual(['postgres', 'postgres.log']);
    expect(await readdir(join(dir, 'postgres'))).not.toContain('postmaster.pid');

    const started = Date.now();
    const second = await open();
    // Nothing is created again.
    expect((Date.now() - started) / (made - began)).toBeLessThan(1);
    expect(await ask(second.url, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
    await second.close();
  });

  it('is durable, listens only on a socket in its own folder, requires a password, and uses UTF-8 with one collation', async () => {
    const server = await open();
    const [row] = await ask(
      server.url,
      `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
        current_setting('listen_addresses') AS listen, (SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user) AS super,
        current_setting('TimeZone') AS zone, pg_encoding_to_char(encoding) AS encoding, datlocprovider AS provider,
        datlocale AS locale, upper('straße é') AS upper FROM pg_database WHERE datname = current_database()`,
    );
    expect(row).toEqual({
      ...{ fsync: 'on', pages: 'on', listen: '', super: false, zone: 'UTC' },
      ...{ encoding: 'UTF8', provider: 'b', locale: 'C.UTF-8', upper: 'STRAßE É' },
    });
    const guess = new URL(server.url);
    guess.password = '';
    await expect(ask(guess.href, 'SELECT 1')).rejects.toThrow();
    expect((await stat(join(dir, 'postgres', '.s.PGSQL.5432'))).mode & 0o777).toBe(0o700);
    await expect(ask(server.url, `COPY (SELECT 1) TO PROGRAM 'id'`)).rejects.toThrow(/permission denied/);
    await server.close();
  });

  it('is reached by its socket, however long the path of its folder', async () => {
    const deep = join(dir, 'a-long-name'.repeat(10), 'b');
    const server = await openEmbedded({ dir: deep, log: silentLog });
    expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.close();
  });

  it('reports to its users when it cannot restart', async () => {
    const server = await open();
    const lost = once(server.lost, 'abort');
    await rename(join(dir, 'postgres', 'global'), join(dir, 'postgres', 'gone'));
    process.kill((await postmasterOf(dir)) ?? 0, 'SIGKILL');
    await lost;
    expect(server.lost.reason).toBeInstanceOf(RetryLater);
    await server.close();
    await rename(join(dir, 'postgres', 'gone'), join(dir, 'postgres', 'global'));
  });

  it('keeps its password in a file for the owner only, and out of every message', async () => {
    const said: unknown[] = [];
    const note = (fields: object, message: string) => said.push(fields, message);
    const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
    const server = await open({ log });
    const { password } = new URL(server.url);
    expect(password).toMatch(/^[\w-]{43}$/);
    const refused: Fault = await open({ log }).catch((error) => error);
    await ask(server.url, `SELECT no_such_column`).catch((error) => said.push(error.message, error.stack));
    await server.close();
    said.push(refused.describe(), refused.stack, await readFile(join(dir, 'postgres.log'), 'utf8'));
    expect(JSON.stringify(said)).not.toContain(password);
    expect(said).toContain('embedded Postgres is ready');
    expect((await stat(join(dir, 'postgres', 'tributary.password'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(dir, 'postgres'))).mode & 0o777).toBe(0o700);
  });

  it('writes no rows into its log', async () => {
    const server = await open();
    await ask(server.url, `CREATE TABLE person (email text UNIQUE)`);
    const twice = `INSERT INTO person VALUES ('ann@example.com')`;
    await ask(server.url, twice);
    await expect(ask(server.url, twice)).rejects.toThrow(/duplicate key/);
    await server.close();
    const log = await readFile(join(dir, 'postgres.log'), 'utf8');
    expect(log).toContain('duplicate key');
    expect(log).not.toContain('ann@example.com');
  });

  it('reports data of another version of Postgres', async () => {
    await (await open()).close();
    await writeFile(join(dir, 'postgres', 'PG_VERSION'), '16\n');
    const error: Fault = await open().catch((fault) => fault);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(/was created by Postgres 16; this version of tributary includes Postgres 18/);
  });

  it('reports a server that cannot start, with its log', async () => {
    await (await open()).close();
    await writeFile(join(dir, 'postgres', 'postgresql.conf'), 'nonsense = 1\n');
    const error: Fault = await open().catch((fault) => fault);
    expect(error.message).toMatch(/did not start: it ended with 1/);
    expect(error.next).toContain(join(dir, 'postgres.log'));
    expect(String(error.cause)).toContain('nonsense');
  });
});

describe('users', () => {
  const uidOf = async (pid = 0) => Number(/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);

  const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
  const statusOf = async (pid = 0) => readFile(`/proc/${pid}/status`, 'utf8');

  it.runIf(process.platform === 'linux').each(['700', '755'])(
    'never runs as root or with a privilege of root, in a folder of mode %s',
    async (mode) => {
      await chmod(dir, mode);
      const server = await open();
      const pid = await postmasterOf(dir);
      expect(await uidOf(pid)).not.toBe(0);
      expect(await statusOf(pid)).toMatch(/^CapEff:\s+0+$/m);
      expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await server.close();
    },
  );

  it.runIf(isRoot)('shares its user with no account, even on data that an earlier version gave to one', async () => {
    const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => Number(line.split(':')[2]));
    const readPassword = async (uid: number): Promise<string> => {
      const file = `/proc/${await postmasterOf(dir)}/cwd/tributary.password`;
      return spawnSync('cat', [file], { uid, gid: uid, encoding: 'utf8' }).stderr;
    };
    await (await open()).close();
    spawnSync('chown', ['-R', '65534:65534', join(dir, 'postgres')]);
    const server = await open();
    expect(accounts).not.toContain(await uidOf(await postmasterOf(dir)));
    for (const uid of new Set(accounts.filter((uid) => uid > 0)))
      expect(await readPassword(uid), `user ${uid}`).toContain('Permission denied');
    await ask(server.url, 'CREATE TABLE kept AS SELECT 1 AS one');
    await server.close();
  });

  it.runIf(isRoot)('cannot read what only root may, nor files around its data', async () => {
    const server = await open();
    await writeFile(join(dir, 'beside'), 'a key', { mode: 0o644 });
    for (const path of ['/etc/shadow', '../beside', '../..']) {
      const look = `SELECT ${path.endsWith('..') ? 'pg_ls_dir' : 'pg_read_file'}('${path}')`;
      await expect(ask(server.url, look), path).rejects.toThrow(/Permission denied|permission denied/);
    }
    await server.close();
  });

  it.runIf(isRoot)(
    'does not run as root in a folder that another user owns, and follows none of their links',
    async () => {
      const treasure = join(dir, 'of-root');
      await writeFile(treasure, 'untouched', { mode: 0o600 });
      const state = join(dir, 'state');
      await mkdir(state);
      await symlink(treasure, join(state, 'postgres.log'));
      await chown(state, 65534, 65534);
      const before = await readdir(state);
      const refused: Fault = await openEmbedded({ dir: state, log: silentLog }).catch((error) => error);
      expect(refused).toBeInstanceOf(ConfigError);
      expect(refused.describe()).toMatch(
        /belongs to user 65534.*\nkept: nothing was changed\nnext: run tributary as the user/,
      );
      expect(await readFile(treasure, 'utf8')).toBe('untouched');
      expect(await readdir(state)).toEqual(before);

      await rename(state, `${state}-theirs`);
      await symlink(dir, state);
      await expect(openEmbedded({ dir: state, log: silentLog })).rejects.toThrow(/is a link or not a folder/);
    },
  );

  it('does not open a log that is a link', async () => {
    await (await open()).close();
    const elsewhere = join(dir, 'elsewhere');
    await writeFile(elsewhere, '');
    await rename(join(dir, 'postgres.log'), join(dir, 'old.log'));
    await symlink(elsewhere, join(dir, 'postgres.log'));
    await expect(open()).rejects.toThrow(/ELOOP/);
    expect(await readFile(elsewhere, 'utf8')).toBe('');
  });

  it.runIf(process.platform === 'linux')('works for an ordinary user', async () => {
    const ordinary = process.getuid?.() === 0 ? 65534 : process.getuid?.();
    if (process.getuid?.() === 0) await chown(dir, 65534, 65534);
    const child = startChild(dir, { as: dir });
    const { url = '', uid } = await child.answer;
    expect(uid).toBe(ordinary);
    expect(await uidOf(await postmasterOf(dir))).toBe(ordinary);
    await ask(url, 'CREATE TABLE kept AS SELECT 1 AS one');
    await child.close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });
});
