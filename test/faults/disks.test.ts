import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';
import { type Finished, freshPlace, MAIN, type Place, startProcess } from '../support/cli.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { download } from '../support/lake-place.ts';
import { readWithDuckdb } from '../support/lake-readers.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { recordCase } from '../support/proof.ts';
import { startS3 } from '../support/s3-server.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { lossesOf } from './losses.ts';
import { isProving, KEY, messageOf } from './wire-scene.ts';

/** A disk of a few kilobytes in memory: it can be full, grow, and be read-only. Only root may mount one. */
interface SmallDisk {
  folder: string;
  set(options: string): void;
  remove(): void;
}

const mount = (...args: string[]): void => void execFileSync('mount', args, { stdio: 'ignore' });

function mountSmallDisk(kilobytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'tributary-disk-'));
  try {
    mount('-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'none', folder);
  } catch {
    // Recovery: not root, or a container that may not mount. The tests do without.
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
  return {
    folder,
    set: (options) => mount('-o', `remount,${options}`, folder),
    remove() {
      execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let sandbox: Sandbox;
let disk: SmallDisk | undefined;
const opened: Engine[] = [];
beforeAll(async () => {
  sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 900, leads: 100, sales: 50 }, days: 5 });
});
afterAll(async () => {
  for (const engine of opened) await engine.close();
  disk?.remove();
});

/** A place with a lake at this path and its own state. */
async function openLake(lake: string): Promise<Place> {
  const [engine, place] = await Promise.all([openEngine(), freshPlace()]);
  opened.push(engine);
  const source = { baseUrl: sandbox.baseUrl, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500, since: '30d' };
  const sinks = { lake: { type: 'parquet', path: lake } };
  await place.config(JSON.stringify({ sources: { main: source }, sinks, state: { url: engine.url } }));
  return place;
}

const SYNC = ['sync', '--config', 't.yaml'];
const idsIn = (folder: string) => async (stream: StreamName) =>
  (await readWithDuckdb(folder, STREAMS[stream])).map((row) => String(row.event_id));

function expectTold({ stderr, text }: Finished, what: RegExp): void {
  const message = messageOf(stderr);
  expect(message).toMatch(what);
  expect(message).toMatch(/^main\/\w+/m);
  expect(message).toMatch(/^kept: .*\nnext: /m);
  expect(message).not.toMatch(/this is a bug|^ +at /m);
  expect(text).not.toContain(KEY);
}

/** Temporary and lock files of the lake. */
const unfinished = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(tmp|lock)$/.test(name));

it('a sync to a full disk reports it, leaves no partial files, and completes once there is room', async () => {
  disk = mountSmallDisk(150);
  const small = disk;
  const place = await openLake(small?.folder ?? 'lake');
  const folder = small?.folder ?? join(place.dir, 'lake');
  // Without a mounted disk: a limit on file size.
  const limited = ['--fsize=10000', process.execPath, MAIN, ...SYNC];
  const stopped = small
    ? await place.run(SYNC)
    : await startProcess('prlimit', limited, place.dir, { PATH: process.env.PATH ?? '' }).done;
  const left = unfinished(folder);
  small?.set('size=50m');
  const { code } = await place.run(SYNC);
  const losses = await lossesOf(sandbox, idsIn(folder));
  recordCase({ suite: 'wire', name: 'full disk: lake', survived: code === 0, ...losses });
  expectTold(stopped, /the disk of .* has no room left \((ENOSPC|EFBIG)\)/);
  expect(stopped.code).toBe(4);
  expect(left).toEqual([]);
  expect({ code, ...losses }).toEqual({ code: 0, lost: 0, doubled: 0 });
});

it('a sync to S3 through a full disk reports it, leaves no files there, and completes once there is room', async (context) => {
  const small = mountSmallDisk(20);
  if (!small) return context.skip('only root may mount a disk');
  const s3 = await startS3();
  Object.assign(process.env, s3.environment);
  const place = await openLake(`s3://${s3.bucket}/lake`);
  const stopped = await place.run(SYNC, { ...s3.environment, TMPDIR: small.folder });
  const left = unfinished(small.folder);
  small.set('size=50m');
  const { code } = await place.run(SYNC, { ...s3.environment, TMPDIR: small.folder });
  await download(s3, 'lake/', join(place.dir, 'copy'));
  const losses = await lossesOf(sandbox, idsIn(join(place.dir, 'copy')));
  const leftAtLast = unfinished(small.folder);
  small.remove();
  await s3.close();
  recordCase({ suite: 'wire', name: 'full disk: on the way to S3', survived: code === 0, ...losses });
  expectTold(stopped, /the disk of .* has no room left \(ENOSPC\)/);
  expect({ code: stopped.code, left, leftAtLast }).toEqual({ code: 4, left: [], leftAtLast: [] });
  expect({ code, ...losses }).toEqual({ code: 0, lost: 0, doubled: 0 });
});

it.runIf(isProving)('a read-only folder needs the user to act, and works once it is writable', async (context) => {
  disk ??= mountSmallDisk(50_000);
  if (!disk) return context.skip('only root may mount a disk');
  const folder = join(disk.folder, 'lake');
  const place = await openLake(folder);
  disk.set('ro');
  const stopped = await place.run(SYNC);
  disk.set('rw,size=50m');
  const { code } = await place.run(SYNC);
  const losses = await lossesOf(sandbox, idsIn(folder));
  recordCase({ suite: 'wire', name: 'read-only folder: lake', survived: code === 0, ...losses });
  expectTold(stopped, /may not be written \(\w+\)/);
  expect(stopped.code).toBe(2);
  expect({ code, ...losses }).toEqual({ code: 0, lost: 0, doubled: 0 });
});

it.runIf(isProving)('a folder in which no state can be created needs the user to act', async (context) => {
  const small = mountSmallDisk(100);
  if (!small) return context.skip('only root may mount a disk');
  const source = { baseUrl: sandbox.baseUrl, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500 };
  await writeFile(join(small.folder, 't.yaml'), JSON.stringify({ sources: { main: source } }));
  small.set('ro');
  const env = { PATH: process.env.PATH ?? '' };
  const { code, stderr } = await startProcess(process.execPath, [MAIN, ...SYNC], small.folder, env).done;
  small.remove();
  recordCase({ suite: 'wire', name: 'read-only folder: state', survived: code === 2, lost: 0, doubled: 0 });
  expect(stderr).toMatch(/^the state folder .* cannot be created \(\w+\)\nnext: run it in a folder/);
  expect(code).toBe(2);
});

it('an export to a full disk leaves nothing behind', async () => {
  const place = await openLake('lake');
  const small = mountSmallDisk(100);
  const out = join(small?.folder ?? place.dir, 'clicks.csv');
  const args = ['export', 'clicks', '--from', '30d', '--to', 'now', '--out', out, '--config', 't.yaml'];
  const limited = ['--fsize=10000', process.execPath, MAIN, ...args];
  const stopped = small
    ? await place.run(args)
    : await startProcess('prlimit', limited, place.dir, { PATH: process.env.PATH ?? '' }).done;
  const left = readdirSync(small?.folder ?? place.dir).filter((name) => name.startsWith('clicks'));
  small?.remove();
  recordCase({ suite: 'wire', name: 'full disk: export', survived: stopped.code === 4, lost: 0, doubled: 0 });
  expect(messageOf(stopped.stderr)).toMatch(/the disk of .*clicks\.csv(\.spool)? has no room left/);
  expect(stopped.code).toBe(4);
  expect(left).toEqual([]);
});
