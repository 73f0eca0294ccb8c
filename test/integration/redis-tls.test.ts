import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { clearFindings } from '../../src/app/doctor.ts';
import { parseConfig } from '../../src/config/index.ts';
import { readInfo } from '../../src/jobs/redis.ts';
import { ConfigError, type Fault } from '../../src/model/errors.ts';
import { createAuthority } from '../support/certificates.ts';
import { freshPlace } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/servers.ts';

const closers: Array<() => Promise<void>> = [];
afterAll(async () => {
  for (const close of closers) await close();
});

it('distinguishes an untrusted certificate of Redis from an unreachable Redis', async () => {
  const authority = createAuthority();
  closers.push(() => rm(authority.folder, { recursive: true, force: true }));
  const { key, cert } = authority.sign({ isSelfSigned: true });
  const [keyFile, certFile] = [join(authority.folder, 'redis.key'), join(authority.folder, 'redis.pem')];
  writeFileSync(keyFile, key);
  writeFileSync(certFile, cert);
  const tlsPort = await freePort();
  const redis = await startRedisServer({
    'tls-port': String(tlsPort),
    'tls-cert-file': certFile,
    'tls-key-file': keyFile,
    'tls-auth-clients': 'no',
  });
  closers.push(redis.close);
  const faultOf = (url: string): Promise<Fault> => readInfo(url).catch((error) => error);
  const untrusted = await faultOf(`rediss://127.0.0.1:${tlsPort}`);
  expect(untrusted).toBeInstanceOf(ConfigError);
  expect(untrusted.describe()).toMatch(
    /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)[\s\S]*NODE_EXTRA_CA_CERTS/,
  );
});

it('notes connections to other machines that are not encrypted, and only those', () => {
  const subjects = (text: string): string[] =>
    clearFindings(parseConfig(text, 't.yaml', {}).config).map(({ subject }) => subject);
  const all = (database: string, queue: string): string =>
    `state: { url: "${database}" }\nsinks: { w: { type: postgres, url: "${database}" } }\nqueue: { url: "${queue}" }\n`;
  expect(subjects(all('postgresql://u:p@db.internal/x', 'redis://cache:6379'))).toEqual(['state', 'sink w', 'queue']);
  expect(subjects(all('postgresql://u:p@db.internal/x?sslmode=verify-full', 'rediss://cache:6379'))).toEqual([]);
  expect(subjects(all('postgresql://u:p@127.0.0.1/x', 'redis://localhost:6379'))).toEqual([]);
  expect(subjects('')).toEqual([]);
});

it('makes a worker say so at startup', async () => {
  const place = await freshPlace();
  await place.config(
    `sources: { main: { baseUrl: "http://127.0.0.1:9", apiKey: k, plan: pro } }
sinks: { w: { type: postgres } }
state: { url: "postgresql://u:p@db.invalid/x" }
queue: { url: "redis://cache.invalid:6379" }\n`,
  );
  const { stderr } = await place.run(['worker', '--config', 't.yaml']);
  expect(
    stderr.match(/^note: (state|queue) is on another machine, and the connection is not encrypted: /gm),
  ).toHaveLength(2);
});
