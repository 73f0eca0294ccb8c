import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { createS3Store } from '../../src/sinks/files/store/s3-store.ts';
import { readSmall, type Staged, type Store, writeSmall } from '../../src/sinks/files/store/store.ts';
import { freshPlace } from '../support/cli.ts';
import { openEngine } from '../support/engine.ts';
import { s3Place } from '../support/lake-place.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { sandboxWith } from '../support/sandbox.ts';
import { createWriter, NOON, rowOf } from '../support/sink-harness.ts';

/** What differs in S3: there is no rename, and a request can break off anywhere. */
const PART = 8 * 1024 * 1024;
let server: S3Server;
let store: Store;
beforeAll(async () => {
  server = await startS3();
  Object.assign(process.env, server.environment, { AWS_MAX_ATTEMPTS: '3' });
  store = createS3Store({ url: `s3://${server.bucket}/a/lake`, pathStyle: true });
});
beforeEach(() => {
  server.onRequest = () => {};
  server.onAnswer = () => {};
  server.requests.length = 0;
});
afterAll(async () => {
  await store.close();
  await server.close();
});

async function staged(path: string, bytes: Uint8Array): Promise<Staged> {
  const made = await store.stage(path);
  await made.write(bytes, 0);
  await (await made.finish()).close();
  return made;
}
const read = async (path: string): Promise<string> => {
  const open = await store.open(path);
  return open ? Buffer.from(await open.read(0, Math.min(open.size, 20))).toString() : 'nothing';
};

it('replaces an object only if it is the one that was read, also in parts', async () => {
  for (const size of [10, PART + 10]) {
    const path = `clicks/date=2026-11-14/of-${size}.parquet`;
    const bytes = (letter: string) => Buffer.alloc(size, letter);
    const [one, two] = [await staged(path, bytes('1')), await staged(path, bytes('2'))];
    const first = await one.publish(undefined);
    await expect(two.publish(undefined)).rejects.toThrow(/replaced by another writer/);
    const [three, four] = [await staged(path, bytes('3')), await staged(path, bytes('4'))];
    await three.publish(first);
    await expect(four.publish(first)).rejects.toThrow(/replaced by another writer/);
    expect(await read(path)).toBe('3'.repeat(Math.min(size, 20)));
    for (const each of [one, two, three, four]) await each.discard();
  }
  expect(server.requests.some((request) => request.includes('partNumber=2'))).toBe(true);
  expect(server.uploads()).toEqual([]);
});

it('recognizes its own object when the response to a request was lost', async () => {
  const path = 'clicks/date=2026-11-14/lost.parquet';
  const made = await staged(path, Buffer.from('mine'));
  let lost = 0;
  server.onAnswer = (request, response) => {
    if (request.method === 'PUT' && lost++ === 0) response.destroy();
  };
  const identity = await made.publish(undefined);
  expect(server.requests.filter((request) => request.startsWith('PUT'))).toHaveLength(2);
  expect((await store.open(path))?.identity).toBe(identity);
  await made.discard();
});

it('leaves no parts when an upload fails, and aborts the uploads that others left', async () => {
  const path = 'clicks/date=2026-11-14/fails.parquet';
  const made = await staged(path, Buffer.alloc(2 * PART));
  server.onRequest = (request, response) => {
    if (request.url?.includes('partNumber=2')) response.writeHead(500).end();
  };
  await expect(made.publish(undefined)).rejects.toMatchObject({ name: 'RetryLater' });
  expect(server.uploads()).toEqual([]);
  expect(await read(path)).toBe('nothing');
  await made.discard();
  server.onRequest = () => {};
  server.leaveUpload('a/lake/clicks/old.parquet', new Date(Date.now() - 2 * 86_400_000));
  server.leaveUpload('a/lake/clicks/young.parquet', new Date());
  server.leaveUpload('a/lake/clicks/theirs.csv', new Date(0));
  await store.removeLeftovers('clicks');
  expect(server.uploads().sort()).toEqual(['a/lake/clicks/theirs.csv', 'a/lake/clicks/young.parquet']);
});

it('aborts what a killed process left of a file that only this one may write, on every page of the list', async () => {
  const place = await s3Place(server);
  server.uploadsAtOnce = 2;
  const day = `${place.prefix}/clicks/date=2026-11-14`;
  for (let i = 0; i < 5; i++) server.leaveUpload(`${day}/killed.parquet`, new Date());
  server.leaveUpload(`${day}/other.parquet`, new Date());
  server.leaveUpload(`${day}/killed.parquet.csv`, new Date());
  try {
    const writer = await createWriter(place, STREAMS.clicks, 'killed');
    await writer.commit([rowOf(STREAMS.clicks, 'a', NOON)]);
    const left = server.uploads().filter((key) => key.startsWith(place.prefix));
    expect(left.sort()).toEqual([`${day}/killed.parquet.csv`, `${day}/other.parquet`]);
    // The parts may contain data that must be erased.
    server.leaveUpload(`${day}/killed.parquet`, new Date());
    await place.createSink().erase({ source: 'killed', kind: 'click', id: 'nobody' });
    expect(server.uploads()).not.toContain(`${day}/killed.parquet`);
  } finally {
    server.uploadsAtOnce = 1000;
    await place.close();
  }
});

it('aborts it where a server lists uploads only by complete key, before the next one', async () => {
  server.listsWholeKeysOnly = true;
  const path = 'clicks/date=2026-11-14/minio.parquet';
  server.leaveUpload(`a/lake/${path}`, new Date());
  const made = await staged(path, Buffer.alloc(PART + 10));
  try {
    await made.publish(undefined);
    expect(server.uploads()).not.toContain(`a/lake/${path}`);
    expect(await read(path)).toBe('\0'.repeat(20));
  } finally {
    server.listsWholeKeysOnly = false;
    await made.discard();
  }
});

it('reports a deleted object as such, and not as a missing bucket', async () => {
  const path = 'clicks/date=2026-11-14/vanishes.parquet';
  const one = await staged(path, Buffer.from('one'));
  const identity = await one.publish(undefined);
  const [open, two] = [await store.open(path), await staged(path, Buffer.from('two'))];
  await store.remove(path, identity);
  await expect(two.publish(identity)).rejects.toMatchObject({
    name: 'ReplacedMeanwhile',
    message: expect.stringContaining('was removed'),
  });
  await expect(open?.read(0, 3)).rejects.toMatchObject({
    name: 'RetryLater',
    message: expect.stringContaining('was removed'),
  });
  for (const each of [one, two]) await each.discard();
});

it('detects corrupted bytes', async () => {
  const made = await staged('clicks/date=2026-11-14/bent.parquet', Buffer.from('right'));
  server.bend = true;
  await expect(made.publish(undefined)).rejects.toMatchObject({ message: expect.stringContaining('BadDigest') });
  server.bend = false;
  await made.discard();
});

it('reads the object that it opened, or reports its deletion', async () => {
  const path = 'clicks/date=2026-11-14/moves.parquet';
  const one = await staged(path, Buffer.from('one'));
  const identity = await one.publish(undefined);
  const open = await store.open(path);
  const two = await staged(path, Buffer.from('two'));
  await two.publish(identity);
  await expect(open?.read(0, 3)).rejects.toMatchObject({ name: 'RetryLater' });
  await expect(store.remove(path, identity)).rejects.toThrow(/another writer/);
  for (const each of [one, two]) await each.discard();
});

it('reports what is wrong with a bucket, and never shows the key', async () => {
  expect(() => createS3Store({ url: 's3://lake/../other', pathStyle: true })).toThrow(/not a place for a lake/);
  const nowhere = createS3Store({ url: 's3://nowhere/lake', pathStyle: true });
  const fault = await writeSmall(await nowhere.stage('x'), 'y').catch((error: unknown) => error);
  expect(fault).toMatchObject({
    name: 'ConfigError',
    message: 's3://nowhere: there is no such bucket (NoSuchBucket)',
    next: expect.stringContaining('create the bucket'),
  });
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'a-foreign', AWS_SECRET_ACCESS_KEY: 'a-wrong-secret' });
  const foreign = createS3Store({ url: `s3://${server.bucket}/lake`, pathStyle: true });
  // The response to its first request has no body with the reason.
  const refused = await readSmall(foreign, 'x').catch((error: unknown) => error);
  Object.assign(process.env, server.environment);
  server.onRequest = ({ method }, response) => {
    const code = '<Error><Code>SignatureDoesNotMatch</Code><Message>not you</Message></Error>';
    response.writeHead(403, { 'content-type': 'application/xml' }).end(method === 'HEAD' ? '' : code);
  };
  const wrong = await readSmall(store, 'x').catch((error: unknown) => error);
  expect(refused).toMatchObject({
    name: 'ConfigError',
    message: 's3://lake: the access key is unknown there (InvalidAccessKeyId)',
    next: expect.stringContaining('AWS_ACCESS_KEY_ID'),
  });
  expect(wrong).toMatchObject({
    name: 'ConfigError',
    message: 's3://lake: the secret does not belong to the access key (SignatureDoesNotMatch)',
    next: expect.stringContaining('AWS_SECRET_ACCESS_KEY'),
  });
  expect(JSON.stringify(refused) + String(refused)).not.toContain('a-wrong-secret');
});

it('syncs into a bucket without output of the S3 client', async () => {
  const [engine, place, sandbox] = await Promise.all([
    openEngine(),
    freshPlace(),
    sandboxWith([], { rows: { clicks: 40, leads: 10, sales: 5 }, days: 2 }),
  ]);
  try {
    const { baseUrl, apiKey } = sandbox;
    const config = await place.config(
      JSON.stringify({
        sources: { main: { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 500, since: '30d' } },
        sinks: { lake: { type: 'parquet', path: `s3://${server.bucket}/quiet` } },
        state: { url: engine.url },
      }),
    );
    const { code, text } = await place.run(['sync', '--config', config], server.environment);
    expect(text).not.toMatch(/warning/i);
    expect(code).toBe(0);
  } finally {
    await engine.close();
  }
});
