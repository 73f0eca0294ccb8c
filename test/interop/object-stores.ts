import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import { parquetReadObjects } from 'hyparquet';
import { unpackers } from '../../src/sinks/parquet/format/compression.ts';
import { freePort } from '../support/free-port.ts';
import {
  type Desk,
  differences,
  mustBeNone,
  openDesk,
  type Service,
  STREAMS,
  type StreamName,
  sourceOf,
  startService,
  startState,
  until,
} from './built.ts';
import { type Found, type Part, stop, withClosers } from './part.ts';
import { goProgram, goVersion } from './tools.ts';

/** A lake in an object store: first sync, arrivals, kills in the middle, a backfill, an erasure; then every object is read. */

interface Store {
  program: string;
  module: string;
  command(folder: string, address: string): { args: string[]; env: Record<string, string> };
}

const KEY = 'interop';
const SECRET = 'interop-secret';
const BUCKET = 'lakebucket';

const STORES: Readonly<Record<string, Store>> = {
  versitygw: {
    program: 'versitygw',
    module: 'github.com/versity/versitygw/cmd/versitygw@latest',
    command: (folder, address) => ({
      args: ['--port', address, 'posix', folder],
      env: { ROOT_ACCESS_KEY: KEY, ROOT_SECRET_KEY: SECRET },
    }),
  },
  minio: {
    program: 'minio',
    module: 'github.com/minio/minio@latest',
    command: (folder, address) => ({
      args: ['server', '--address', address, folder],
      env: { MINIO_ROOT_USER: KEY, MINIO_ROOT_PASSWORD: SECRET },
    }),
  },
};

export const objectStores: Part[] = Object.entries(STORES).map(([name, store]) => ({
  name,
  checks: 'a lake in its bucket: sync, arrivals, kill -9 and rerun, backfill, forget; every object read back',
  needs: `${store.program} (go install ${store.module})`,
  run: () => withClosers((opened) => tryStore(store, opened)),
}));

async function tryStore(store: Store, opened: (close: () => unknown) => void): Promise<Found> {
  const program = await goProgram(store.program, store.module);
  const s3 = await startStore(store, program);
  opened(s3.close);
  const state = await startState();
  opened(state.close);
  const service = await startService(
    '--plan',
    'enterprise',
    '--clicks',
    '20000',
    '--leads',
    '3000',
    '--sales',
    '1500',
    '--days',
    '20',
  );
  opened(service.close);
  const config = `${sourceOf(service, '10d')}sinks:
  lake: { type: parquet, path: s3://${BUCKET}/lake, partition: day }
state: { url: "${state.url}" }
`;
  const desk = await openDesk(config, s3.environment);
  opened(desk.close);

  const kills = await killUntilDone(desk, ['sync'], 8);
  for (const stream of STREAMS) await service.arrive(stream, 300);
  await desk.done('sync');
  const days = (n: number): string => new Date(Date.now() - n * 86_400_000).toISOString().slice(0, 10);
  const more = await killUntilDone(desk, ['backfill', '--from', days(30), '--to', days(9)], 4);
  await desk.done('sync');
  const rows = await compare(s3.client, service);

  const truth = await service.truth();
  const click = truth.clicks.at(-1)?.id ?? '';
  await desk.done('forget', '--source', 'main', '--click', click, '--yes');
  await desk.done('sync');
  await compare(s3.client, service, [click]);
  const left = await leftovers(s3.client);
  mustBeNone(left, 'left behind');
  return {
    versions: `${store.program} ${await goVersion(program)}`,
    result: `${rows.toLocaleString('en')} rows after ${kills + more} kills: none lost, none double; no temporary object, no open upload`,
  };
}

/** Kills the command at moments that come later and later, until it gets to its end by itself. */
async function killUntilDone(desk: Desk, args: readonly string[], most: number): Promise<number> {
  for (let kills = 0; kills < most; kills++) {
    const child = desk.start(...args);
    const wait = sleep(1500 + 700 * kills, 'late');
    const first = await Promise.race([wait, new Promise((resolve) => child.once('exit', resolve))]);
    if (first !== 'late') return kills;
    await stop(child, 'SIGKILL');
  }
  await desk.done(...args);
  return most;
}

async function compare(client: S3Client, service: Service, gone: readonly string[] = []): Promise<number> {
  const held = await idsIn(client);
  mustBeNone(differences(held, await service.truth(), gone), 'the lake against the service');
  return [...held.values()].reduce((sum, ids) => sum + ids.length, 0);
}

async function keysIn(client: S3Client): Promise<string[]> {
  const keys: string[] = [];
  let token: string | undefined;
  do {
    const page = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, ContinuationToken: token }));
    keys.push(...(page.Contents ?? []).map(({ Key }) => Key ?? ''));
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return keys;
}

async function idsIn(client: S3Client): Promise<Map<StreamName, string[]>> {
  const compressors = await unpackers();
  const held = new Map<StreamName, string[]>(STREAMS.map((stream) => [stream, []]));
  for (const key of await keysIn(client)) {
    const stream = STREAMS.find((name) => key.startsWith(`lake/${name}/`));
    if (stream === undefined || !key.endsWith('.parquet')) continue;
    const object = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
    const bytes = await object.Body?.transformToByteArray();
    if (bytes === undefined) throw new Error(`${key} is empty`);
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
    const rows = await parquetReadObjects({ file, columns: ['event_id'], compressors });
    held.get(stream)?.push(...rows.map((row) => String(row.event_id)));
  }
  return held;
}

/** Every object is of a table or describes the lake, and no upload is open: MinIO lists uploads only to who names the whole key. */
async function leftovers(client: S3Client): Promise<string[]> {
  const keys = await keysIn(client);
  const odd = keys.filter(
    (key) =>
      !/^lake\/((clicks|leads|sales|links|customers)\/.*\.parquet|README\.md|_catalog\.json|_coverage\.json)$/.test(
        key,
      ),
  );
  const uploads: string[] = [];
  for (const prefix of ['', ...keys]) {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET, Prefix: prefix }));
    uploads.push(...Uploads.map(({ Key }) => `an open upload of ${Key}`));
  }
  return [...odd, ...new Set(uploads)];
}

async function startStore(store: Store, program: string) {
  const folder = await mkdtemp(join(tmpdir(), 'tributary-interop-store-'));
  const address = `127.0.0.1:${await freePort()}`;
  const { args, env } = store.command(folder, address);
  const server: ChildProcess = spawn(program, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  const environment = {
    AWS_ENDPOINT_URL_S3: `http://${address}`,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: KEY,
    AWS_SECRET_ACCESS_KEY: SECRET,
  };
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const client = new S3Client({
    endpoint: environment.AWS_ENDPOINT_URL_S3,
    region: environment.AWS_REGION,
    credentials: { accessKeyId: KEY, secretAccessKey: SECRET },
    forcePathStyle: true,
  });
  const close = async (): Promise<void> => {
    client.destroy();
    await stop(server);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await until(`${store.program} on ${address}`, () =>
      client.send(new CreateBucketCommand({ Bucket: BUCKET })).then(
        () => true,
        () => false,
      ),
    );
  } catch (error) {
    await close();
    throw error;
  }
  return { client, environment, close };
}
