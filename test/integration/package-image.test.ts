import { readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Finished, type Running, startProcess } from '../support/cli.ts';
import { argv, filledEnvExample, readCompose, readDockerfile, said } from '../support/docker.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { emptyFolder, listing, npmCi, pack } from '../support/package.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { hasRedis, startRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';

/**
 * The steps of the Dockerfile in an empty folder: the package unpacked over the lock file's dependencies, then the image's own
 * command line, with the environment from compose.
 */

const image = readDockerfile().at(-1);
/** A container always has 7070 free; here another process may use it. */
const PORT = 20_000 + (process.pid % 20_000);

let root: string;
let home: TestDatabase;
let sandbox: Sandbox;
beforeAll(async () => {
  [root, home, sandbox] = await Promise.all([emptyFolder(), freshDatabase(), smallSandbox()]);
  const { path } = await pack();
  for (const folder of ['app', 'tributary/config', 'tributary/data', 'tmp'])
    await mkdir(join(root, folder), { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) await copyFile(file, join(root, 'app', file));
  await npmCi(join(root, 'app'), ['--omit=dev', '--omit=optional']);
  const unpacked = startProcess('tar', ['-xzf', path, '--strip-components=1'], join(root, 'app'), {});
  expect((await unpacked.done).code).toBe(0);
  const config = await readFile('docker/tributary.yaml', 'utf8');
  await writeFile(join(root, 'tributary/config/tributary.yaml'), config.replace('port: 7070', `port: ${PORT}`));
});
afterAll(() => home.drop());

function environment(): Record<string, string> {
  const { environment: given } = readCompose(filledEnvExample()).services.tributary ?? {};
  const ofImage = Object.fromEntries((said(image, 'ENV') ?? '').split(' ').map((pair) => pair.split('=')));
  // Compose has its own servers, these replace them; the queue is then in the state database.
  const servers = { DATABASE_URL: home.url, REDIS_URL: '', TRIBUTARY_BASE_URL: sandbox.baseUrl };
  return { ...given, ...ofImage, ...servers, TRIBUTARY_API_KEY: sandbox.apiKey, TMPDIR: join(root, 'tmp') };
}

/** Runs a command of the image, as the engine starts it: without a shell, in the image's working folder. */
function started([program = '', ...args]: readonly string[], more: Record<string, string> = {}): Running {
  expect(program).toBe('node');
  const moved = args.map((part) => part.replace(/^\/app\//, join(root, 'app/')).replace(':7070/', `:${PORT}/`));
  const folder = join(root, said(image, 'WORKDIR') ?? '');
  return startProcess(process.execPath, moved, folder, { ...environment(), ...more });
}

/** `docker run tributary …` */
const inContainer = (...args: string[]): Promise<Finished> =>
  started([...argv(said(image, 'ENTRYPOINT')), ...args]).done;

it('has the version of this package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await inContainer('--version')).toMatchObject({ code: 0, stdout: `${version}\n` });
});

it('finds a valid config, and every service that it names', async () => {
  expect(await inContainer('config', 'check')).toMatchObject({ code: 0, stderr: '' });
  const { code, stdout, text } = await inContainer('doctor', '--json');
  expect(code, text).toBe(0);
  expect(stdout).not.toContain(sandbox.apiKey);
});

it('syncs without the optional packages, and writes to no file of its own', async () => {
  const before = await listing(root);
  const { code, stdout, text } = await inContainer('sync', '--json');
  expect(code, text).toBe(0);
  const { streams } = JSON.parse(stdout) as { streams: Array<{ state: string; new: number }> };
  expect(streams.map(({ state, new: rows }) => [state, rows])).toEqual([
    ['done', 900],
    ['done', 300],
    ['done', 200],
  ]);
  expect(await listing(root)).toEqual(before);
});

it.skipIf(!hasRedis)('works until it is stopped, and reports that it is healthy', async () => {
  const { command = [] } = readCompose(filledEnvExample()).services.redis ?? {};
  const flags = command
    .slice(1)
    .join(' ')
    .matchAll(/--(\S+) (\S+)/g);
  const redis = await startRedis(Object.fromEntries([...flags].map(([, name = '', value = '']) => [name, value])));
  const health = (): Promise<Finished> => started(argv(said(image, 'HEALTHCHECK'))).done;
  expect((await health()).code).toBe(1);

  const before = await listing(root);
  const worker = started([...argv(said(image, 'ENTRYPOINT')), ...argv(said(image, 'CMD'))], { REDIS_URL: redis.url });
  await worker.saw('working on 3 streams');
  expect(await health()).toMatchObject({ code: 0, text: '' });
  worker.child.kill('SIGTERM');
  expect((await worker.done).code).toBe(0);
  expect((await health()).code).toBe(1);
  expect(await listing(root)).toEqual(before);
});
