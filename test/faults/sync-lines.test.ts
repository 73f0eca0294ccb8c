import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Finished } from '../support/cli.ts';
import { LINE_FAULTS } from '../support/fault-proxy.ts';
import { recordCase } from '../support/proof.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { isProving, KEY, messageOf, openWireScene, PEERS, type Peer } from './wire-scene.ts';

/**
 * Every fault of a line, before each of the servers that a sync talks to, from its beginning and halfway: `tributary sync` ends by
 * itself and says what happened, and the next one makes everything good.
 */

const MOMENTS = ['from the beginning', 'halfway'] as const;

/** What a line does that only takes its time. */
const MUST_SURVIVE = ['latency', 'a slow line'];
/** What nobody can get round by trying again. */
const MUST_STOP = ['reset', 'half-open', 'refused'];

/** Few bytes, so that the fault falls into the middle of a run. */
const HALFWAY: Readonly<Record<Peer, number>> = { service: 90_000, state: 500_000, warehouse: 250_000, s3: 100_000 };

/** The most connections that a run may open once the line is broken: docs/troubleshooting.md names what they come from. */
const MOST_ATTEMPTS: Readonly<Record<Peer, number>> = { service: 24, state: 200, warehouse: 40, s3: 60 };

interface Case {
  fault: string;
  peer: Peer;
  moment: (typeof MOMENTS)[number];
}

/** Each peer once, in a plain test run. */
const CROSS_SECTION = [
  'reset: service, halfway',
  'cut after some bytes: warehouse, halfway',
  'half-open: s3, halfway',
  'swallowed after some bytes: state, halfway',
];
const nameOf = ({ fault, peer, moment }: Case): string => `${fault}: ${peer}, ${moment}`;
const CASES = Object.keys(LINE_FAULTS)
  .flatMap((fault) => PEERS.flatMap((peer) => MOMENTS.map((moment): Case => ({ fault, peer, moment }))))
  .filter((each) => isProving || CROSS_SECTION.includes(nameOf(each)));

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
  Object.assign(process.env, s3.environment);
});
afterAll(() => s3.close());

/** Where it happened, what was kept and what to do, and no secret. */
function expectClear({ stderr, text }: Finished, peer: Peer): void {
  const message = messageOf(stderr);
  const places = {
    service: /the service|127\.0\.0\.1/,
    state: /Postgres|state database/,
    warehouse: /Postgres/,
    s3: /s3:/,
  };
  expect(message).toMatch(places[peer]);
  expect(message).toMatch(/^next: /m);
  if (/^main\//m.test(message)) expect(message).toMatch(/^kept: /m);
  expect(message).not.toMatch(/this is a bug|^ +at /m);
  expect(text).not.toContain(KEY);
}

async function breakAndRestore({ fault, peer, moment }: Case) {
  const broken = LINE_FAULTS[fault];
  if (!broken) throw new Error(`no fault ${fault}`);
  const scene = await openWireScene(peer, s3);
  await scene.proxy.fail(broken, moment === 'halfway' ? HALFWAY[peer] : 0);
  const stopped = await scene.sync({ hasShortTimeouts: !MUST_SURVIVE.includes(fault) });
  const seen = { hasFailed: scene.proxy.hasFailed(), attempts: scene.proxy.attempts() };
  await scene.proxy.heal();
  const again = await scene.sync();
  const sums = await scene.compare();
  await scene.close();
  return { stopped, ...seen, again, sums };
}

it.each(CASES.map((each) => ({ name: nameOf(each), ...each })))('$name', { timeout: 600_000 }, async (each) => {
  const { stopped, hasFailed, attempts, again, sums } = await breakAndRestore(each);
  recordCase({ suite: 'wire', name: each.name, survived: again.code === 0 && stopped.code !== 1, ...sums });

  expect(hasFailed, stopped.text).toBe(true);
  if (MUST_SURVIVE.includes(each.fault)) expect(stopped.code, stopped.stderr).toBe(0);
  else if (MUST_STOP.includes(each.fault)) expect(stopped.code, stopped.stderr).toBe(4);
  else expect([0, 4], stopped.stderr).toContain(stopped.code);
  if (stopped.code === 4) expectClear(stopped, each.peer);
  expect(attempts).toBeLessThanOrEqual(MOST_ATTEMPTS[each.peer]);
  expect(again.code, again.stderr).toBe(0);
  expect(sums).toEqual({ lost: 0, doubled: 0 });
});
