import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readlinkSync } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { until } from '../../src/cursor/embedded/server.ts';
import { type Fault, RetryLater } from '../../src/model/errors.ts';
import { type Child, postmasterOf, startChild, temporaryFolder } from '../support/embedded.ts';
import { silentLog } from '../support/silent-log.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let dir: string;
let children: Child[];

beforeEach(async () => {
  folder = await temporaryFolder();
  dir = folder.dir;
  children = [];
});

afterEach(async () => {
  for (const child of children)
    if (child.process.exitCode === null && child.process.signalCode === null) await child.kill();
  await folder.remove();
});

const start = (options?: { attach?: boolean }): Child => {
  const child = startChild(dir, options);
  children.push(child);
  return child;
};

const open = (options: { attach?: boolean } = {}) =>
  openEmbedded({ dir, log: silentLog, command: 'this test', ...options });

async function ask(url: string | undefined, text: string): Promise<Record<string, unknown>[]> {
  const db = connect({ url: url ?? '' });
  try {
    return await db.query({ text });
  } finally {
    await db.close();
  }
}

const answers = (url: string) =>
  ask(url, 'SELECT 1').then(
    () => true,
    () => false,
  );

/** Every server on this folder, according to the kernel: a server's working directory is its data directory. */
async function postmasters(): Promise<number> {
  const own = (await readdir('/proc')).filter((pid) => {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== join(dir, 'postgres')) return false;
    } catch {
      // Recovery: not a process, or it has just ended; either way not a server.
      return false;
    }
    return true;
  });
  const parents = await Promise.all(
    own.map(async (pid) => (await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')).split(') ')[1]?.split(' ')[1]),
  );
  // No parent: a session that ended between the two reads.
  return parents.filter((parent) => parent !== undefined && !own.includes(parent)).length;
}

describe('concurrent processes', () => {
  it('refuse a second owner: by whom, since when, what to do', async () => {
    const owner = await open();
    const other = start();
    const { refused = '' } = await other.answer;
    expect(refused).toContain(`pid ${process.pid} (this test), since 20`);
    expect(refused).toMatch(/next: wait until it ends, stop it \(kill \d+\), or set state.url/);
    expect(await ask(owner.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    const again: Fault = await open().catch((error) => error);
    expect(again).toBeInstanceOf(RetryLater);
    await owner.close();
    const next = await open();
    await next.close();
  });

  it('share the folder if one only reads, which leaves the owner alone', async () => {
    const owner = start();
    const { url } = await owner.answer;
    const reader = await open({ attach: true });
    expect(await ask(reader.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await reader.close();
    expect(await ask(url, 'SELECT 2 AS two')).toEqual([{ two: 2 }]);
    await owner.close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });

  it('share it if the reader came first; the last to leave stops the server', async () => {
    const reader = await open({ attach: true });
    const owner = start();
    const { url } = await owner.answer;
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await owner.close();
    expect(await ask(reader.url, 'SELECT 2 AS two')).toEqual([{ two: 2 }]);
    await reader.close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });

  it('have one winner if four start at once on an empty folder, or on a full one', async () => {
    for (const round of ['empty', 'full']) {
      const crowd = [start(), start(), start(), start()];
      const answers = await Promise.all(crowd.map(({ answer }) => answer));
      const winners = answers.filter(({ url }) => url !== undefined);
      expect(winners, round).toHaveLength(1);
      expect(answers.filter(({ refused }) => refused?.includes('in use by another process'))).toHaveLength(3);
      expect(await ask(winners[0]?.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      if (process.platform === 'linux') expect(await postmasters()).toBe(1);
      await Promise.all(crowd.map((child) => child.close()));
      expect(await postmasterOf(dir)).toBeUndefined();
      expect((await readdir(dir)).sort()).toEqual(['postgres', 'postgres.log']);
    }
  });

  it('get a server if one opens while the last one closes', async () => {
    for (let round = 0; round < 5; round += 1) {
      const before = await open();
      const closing = before.close();
      await sleep(round * 4);
      const after = await open();
      await closing;
      expect(await ask(after.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await after.close();
    }
  });
});

describe('crashes', () => {
  it('of our process: the next one takes over the server, with everything committed', async () => {
    const victim = start();
    const { url } = await victim.answer;
    await ask(url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const pid = await postmasterOf(dir);
    await victim.kill();
    expect(await postmasterOf(dir)).toBe(pid);

    const heir = await open();
    expect(await postmasterOf(dir)).toBe(pid);
    if (process.platform === 'linux') expect(await postmasters()).toBe(1);
    expect(await ask(heir.url, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
    await heir.close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });

  it('of the server: it restarts at the same URL, with everything, and is still ours', async () => {
    const owner = await open();
    await ask(owner.url, 'CREATE TABLE kept AS SELECT n FROM generate_series(1, 1000) n');
    process.kill((await postmasterOf(dir)) ?? 0, 'SIGKILL');
    expect(await until(20_000, () => answers(owner.url))).toBe(true);
    expect(await ask(owner.url, 'SELECT count(*) FROM kept')).toEqual([{ count: 1000 }]);
    expect((await start().answer).refused).toContain(`pid ${process.pid}`);
    await owner.close();
    expect(await postmasterOf(dir)).toBeUndefined();
    const next = await open();
    expect(await ask(next.url, 'SELECT count(*) FROM kept')).toEqual([{ count: 1000 }]);
    await next.close();
  });

  it('of one server session: all sessions are lost, and the server is still ours', async () => {
    const owner = await open();
    const db = connect({ url: owner.url });
    const session = await db.session();
    const [me] = await session.query<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
    process.kill(me?.pid ?? 0, 'SIGKILL');
    await session.ended;
    await session.close();
    await db.close();
    expect(await until(20_000, () => answers(owner.url))).toBe(true);
    expect((await start().answer).refused).toContain(`pid ${process.pid}`);
    await owner.close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });

  it('of the server just before we close: the close succeeds', async () => {
    const owner = await open();
    process.kill((await postmasterOf(dir)) ?? 0, 'SIGKILL');
    await owner.close();
    await (await open()).close();
    expect(await postmasterOf(dir)).toBeUndefined();
  });

  it('of both', async () => {
    const victim = start();
    await ask((await victim.answer).url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    process.kill((await postmasterOf(dir)) ?? 0, 'SIGKILL');
    await victim.kill();
    const heir = await open();
    expect(await ask(heir.url, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
    await heir.close();
  });

  it.runIf(process.platform === 'linux')('of the server whose pid another program has now', async () => {
    await (await open()).close();
    const data = join(dir, 'postgres');
    const { uid, gid } = await stat(data);
    // Of the same user: Postgres itself already ignores other users' processes.
    const bystander = spawn('sleep', ['60'], process.getuid?.() === 0 ? { uid, gid } : {});
    await once(bystander, 'spawn');
    try {
      await writeFile(join(data, 'postmaster.pid'), `${bystander.pid}\n${data}\n1\n54321\n\n127.0.0.1\n  1 2\nready\n`);
      const server = await open();
      expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await server.close();
      expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
    } finally {
      bystander.kill();
    }
  });

  it('in the middle of initdb: the next start begins again', async () => {
    const victim = start();
    let workshop = '';
    const begun = await until(20_000, async () => {
      workshop = (await readdir(dir)).find((name) => /^postgres\.init-\w+$/.test(name)) ?? workshop;
      return workshop !== '' && existsSync(join(dir, workshop, 'PG_VERSION'));
    });
    expect(begun).toBe(true);
    await victim.kill();
    expect((await readdir(dir)).sort()).toEqual([workshop, `${workshop}-password`]);
    const heir = await open();
    expect(await ask(heir.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await heir.close();
    // The leftovers are removed, at the latest when the orphaned initdb has ended.
    const swept = await until(20_000, async () => {
      await (await open()).close();
      return !existsSync(join(dir, workshop));
    });
    expect(swept).toBe(true);
    expect((await readdir(dir)).sort()).toEqual(['postgres', 'postgres.log']);
  });

  it('Ctrl-C in the terminal reaches us, not the server', async () => {
    const child = start();
    const { url } = await child.answer;
    process.kill(-child.pid, 'SIGINT');
    await sleep(200);
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await child.close();
    expect(child.process.exitCode).toBe(0);
  });
});
