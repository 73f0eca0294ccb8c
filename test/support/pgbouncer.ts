import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find((path) =>
  existsSync(path),
);

export const hasPgBouncer = PROGRAM !== undefined;

/** PgBouncer in transaction mode before a database. As it is installed, it refuses startup parameters; those named here are ignored. */
export async function startPgBouncer(
  url: string,
  { ignores = [] as readonly string[] } = {},
): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const dir = mkdtempSync(join(tmpdir(), 'tributary-pgbouncer-'));
  const listen = await freePort();
  writeFileSync(
    join(dir, 'pgbouncer.ini'),
    [
      '[databases]',
      `* = host=${hostname} port=${port} user=${username} password=${password}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1`,
      `listen_port = ${listen}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      // Fewer than clients: a connection changes hands at every transaction.
      'default_pool_size = 4',
      `ignore_startup_parameters = ${ignores.join(',')}`,
    ].join('\n'),
  );
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  for (const path of [dir, join(dir, 'pgbouncer.ini')]) if (user.uid !== undefined) chownSync(path, user.uid, user.gid);
  const bouncer = spawn(PROGRAM ?? 'pgbouncer', [join(dir, 'pgbouncer.ini')], { ...user, cwd: dir, stdio: 'ignore' });
  const exited = once(bouncer, 'exit');
  await untilListening(listen);
  return {
    url: `postgresql://${username}@127.0.0.1:${listen}${pathname}`,
    async close() {
      bouncer.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const idOf = (flag: '-u' | '-g'): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }).trim());

async function untilListening(port: number): Promise<void> {
  for (let left = 200; left > 0; left -= 1) {
    const socket = dial(port, '127.0.0.1');
    const isThere = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
      sleep(1000, false),
    ]);
    socket.destroy();
    if (isThere) return;
    await sleep(50);
  }
  throw new Error('PgBouncer did not come up');
}
