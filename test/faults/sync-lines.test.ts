import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Finished } from '../support/cli.ts';
import { LINE_FAULTS } from '../support/fault-proxy.ts';
import { recordCase } from '../support/proof.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { isProving, KEY, messageOf, openWireScene, PEERS, type Peer } from './wire-scene.ts';

/**
 * Every fault of a connection, to each server of a sync, at its start and halfway: `tributary sync` ends
 * and reports it, and the next run completes.
 */

const MOMENTS = ['from the beginning', 'halfway'] as const;

/** Faults that only delay. */
const MUST_SURVIVE = ['latency', 'a slow line'];
/** Faults that no retry can overcome. */
const MUST_STOP = ['reset', 'half-open', 'refused'];

/** Small, so that the fault falls into the middle of a run. */
const HALFWAY: Readonly<Record<Peer, number>> = { service: 90_000, state: 500_000, warehouse: 250_000, s3: 100_000 };

/** The most connections that a run may open after the fault: docs/troubleshooting.md explains their number. */
const MOST_ATTEMPTS: Readonly<Record<Peer, number>> = { service: 24, state: 200, warehouse: 40, s3: 60 };

interface Case {
  fault: string;
  peer: Peer;
  moment: (typeof MOMENTS)[number];
}

/** Each peer once, without TRIBUTARY_PROVE. */
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

/** The message names the place, what was kept and what to do, and contains no secret. */
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
