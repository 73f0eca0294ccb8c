import { rmSync } from 'node:fs';
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { type Finished, freshPlace } from '../support/cli.ts';
import { openEngine } from '../support/engine.ts';
import { listening, passTo } from '../support/front.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { recordCase } from '../support/proof.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { idsIn, lossesOf } from './losses.ts';
import { isProving, KEY, messageOf, SHORT_TIMEOUTS } from './wire-scene.ts';

/** A service with a wrong name or certificate: the sync reports it, and completes once it is corrected. */

const authority = createAuthority();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 40, leads: 10, sales: 5 }, days: 5 });
});
afterAll(() => rmSync(authority.folder, { recursive: true, force: true }));

/** Syncs of the service at this address, into a new database. */
async function openSyncs(baseUrl: string, preload = '') {
  const [engine, place] = await Promise.all([openEngine(), freshPlace()]);
  const source = { baseUrl, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500, since: '30d' };
  await place.config(JSON.stringify({ sources: { main: source }, state: { url: engine.url } }));
  return {
    /** Short timeouts only where the sync must fail: on a busy machine they would fail a healthy one. */
    sync: ({ hasShortTimeouts }: { hasShortTimeouts: boolean }): Promise<Finished> =>
      place.run(['sync', '--config', 't.yaml'], {
        NODE_OPTIONS: `${hasShortTimeouts ? SHORT_TIMEOUTS.NODE_OPTIONS : ''} ${preload}`,
        NODE_EXTRA_CA_CERTS: authority.file,
      }),
    compare: () => lossesOf(sandbox, idsIn(engine.db)),
    close: () => engine.close(),
  };
}

function expectStopped({ code, stderr, text }: Finished, what: RegExp): void {
  const message = messageOf(stderr);
  expect(message).toMatch(what);
  expect(message).toMatch(/^main\/\w+: gave up after 6 tries .*\nkept: nothing had been written yet\nnext: .*\nalso: /);
  expect(code).toBe(4);
  expect(text).not.toContain(KEY);
}

interface BadCertificate {
  name: string;
  options: Parameters<typeof authority.sign>[0];
  says: RegExp;
}
const CERTIFICATES: BadCertificate[] = [
  { name: 'self-signed', options: { isSelfSigned: true }, says: /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED/ },
  { name: 'expired', options: { isExpired: true }, says: /certificate is not trusted \(CERT_HAS_EXPIRED\)/ },
  { name: 'for another host', options: { host: 'DNS:other.example' }, says: /not trusted \(ERR_TLS_CERT_ALTNAME/ },
];

it.each(isProving ? CERTIFICATES : CERTIFICATES.slice(0, 1))(
  'a sync fails on a certificate that is $name, and the next completes with a valid one',
  async ({ name, options, says }) => {
    const server = createSecure(authority.sign(options), passTo(sandbox));
    const syncs = await openSyncs(`https://127.0.0.1:${await listening(server)}`);
    const stopped = await syncs.sync({ hasShortTimeouts: true });
    server.setSecureContext(authority.sign());
    const { code } = await syncs.sync({ hasShortTimeouts: false });
    const sums = await syncs.compare();
    recordCase({ suite: 'wire', name: `certificate ${name}: service`, survived: code === 0, ...sums });
    await syncs.close();
    server.close();
    expectStopped(stopped, says);
    expect({ code, ...sums }).toEqual({ code: 0, lost: 0, doubled: 0 });
  },
);

it.runIf(isProving)('a sync fails on plain HTTP where TLS is expected', async () => {
  const server = createPlain(passTo(sandbox));
  const syncs = await openSyncs(`https://127.0.0.1:${await listening(server)}`);
  const stopped = await syncs.sync({ hasShortTimeouts: true });
  recordCase({ suite: 'wire', name: 'no TLS: service', survived: stopped.code === 4, lost: 0, doubled: 0 });
  await syncs.close();
  server.close();
  expectStopped(stopped, /does not speak TLS as expected \((EPROTO|ERR_SSL_\w+)\)/);
});

it.runIf(isProving)('a sync fails on an unknown host name', async () => {
  const syncs = await openSyncs('https://nowhere.invalid');
  const stopped = await syncs.sync({ hasShortTimeouts: true });
  recordCase({ suite: 'wire', name: 'unknown name: service', survived: stopped.code === 4, lost: 0, doubled: 0 });
  await syncs.close();
  // Without any DNS, the name cannot be reported as unknown.
  expectStopped(stopped, /nowhere\.invalid:443: (the host name is unknown|the DNS did not answer)/);
});

it('a sync continues when a name resolves after a few lookups', async () => {
  const server = createSecure(authority.sign({ host: 'DNS:later.invalid' }), passTo(sandbox));
  const preload = `--import ${pathToFileURL('test/faults/resolves-later.mjs').href}`;
  const syncs = await openSyncs(`https://later.invalid:${await listening(server)}`, preload);
  const { code, stderr } = await syncs.sync({ hasShortTimeouts: false });
  const sums = await syncs.compare();
  recordCase({ suite: 'wire', name: 'name known later: service', survived: code === 0, ...sums });
  await syncs.close();
  server.close();
  expect(stderr).toContain('trying again: later.invalid');
  expect({ code, ...sums }).toEqual({ code: 0, lost: 0, doubled: 0 });
});
