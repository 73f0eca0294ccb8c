import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../../src/cursor/database/index.ts';
import { freePort } from './free-port.ts';

/** Where Debian and its kin install a server of this version. */
export const stockPostgres = (version: number): string | undefined => {
  const bin = `/usr/lib/postgresql/${version}/bin`;
  return existsSync(join(bin, 'postgres')) ? bin : undefined;
};

export interface StockPostgres {
  url: string;
  close(): Promise<void>;
}

/** A server as the distribution ships it, in a folder of its own; given a primary, a hot standby of it. */
export async function startStock(bin: string, primary?: StockPostgres): Promise<StockPostgres> {
  const dir = mkdtempSync(join(tmpdir(), 'tributary-stock-'));
  // Postgres refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  const data = join(dir, 'data');
  const make = primary
    ? ['pg_basebackup', '-d', primary.url, '-D', data, '-R', '-c', 'fast']
    : ['initdb', '-D', data, '-U', 'stock', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
  execFileSync(join(bin, make[0] ?? ''), make.slice(1), { ...user, cwd: dir, stdio: 'ignore' });
  const port = await freePort();
  const options = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', dir, '-F'];
  const server = spawn(join(bin, 'postgres'), options, { ...user, cwd: dir, stdio: 'ignore' });
  const exited = once(server, 'exit');
  const url = `postgresql://stock@127.0.0.1:${port}/postgres`;
  await untilReady(url);
  return {
    url,
    async close() {
      server.kill('SIGINT');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }).trim());
}

async function untilReady(url: string): Promise<void> {
  const db = connect({ url, max: 1 });
  try {
    for (let left = 200; ; left--) {
      try {
        await db.query({ text: 'select 1' });
        return;
      } catch (error) {
        // Recovery: it is still starting.
        if (left === 0) throw error;
        await sleep(50);
      }
    }
  } finally {
    await db.close();
  }
}
