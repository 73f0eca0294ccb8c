import { afterAll, beforeAll, expect, it } from 'vitest';
import { discover, killAtEach, nameOf, type Scene } from '../support/crash/cases.ts';
import { createSample, everyStep, labelOf } from '../support/crash/choose.ts';
import {
  backfillHistory,
  firstSync,
  forgetCustomer,
  forgetSource,
  laterSync,
  maintainTables,
  parallelism,
  refill,
  rewriteLake,
  upgradedSync,
  veryFirstSync,
} from '../support/crash/commands.ts';
import { faultsOfOrder } from '../support/crash/order.ts';
import { type Grounds, openGrounds } from '../support/crash/sites.ts';
import { workerTurn } from '../support/crash/worker-command.ts';
import { hasRedis } from '../support/redis.ts';

/**
 * Kill -9 at every step of I/O that a command takes, whoever added it; then run it again. Between the two, what is called complete is
 * there. In the end the sinks hold what the service has, each event once, and nothing is left behind.
 *
 * Here: one step of each kind. With TRIBUTARY_PROVE=1: every step (of one that comes again and again the first, the second, the middle
 * and the last), on more sinks.
 */
const isWhole = process.env.TRIBUTARY_PROVE === '1';

const SAMPLED: readonly Scene[] = [
  { command: firstSync, sites: ['folder'] },
  { command: laterSync, sites: ['elsewhere', 'folder'] },
  { command: firstSync, sites: ['s3'] },
  { command: firstSync, sites: ['tables'] },
  { command: laterSync, sites: ['tables'] },
  { command: upgradedSync, sites: ['folder'] },
  { command: refill, sites: ['here'] },
  { command: refill, sites: ['elsewhere', 'folder'] },
  { command: backfillHistory, sites: ['here'] },
  { command: forgetCustomer, sites: ['here', 'folder'] },
  { command: forgetSource, sites: ['elsewhere', 'folder'] },
  { command: forgetCustomer, sites: ['tables'] },
  { command: maintainTables, sites: ['tables'] },
  { command: workerTurn('redis'), sites: ['here'] },
  { command: workerTurn('postgres'), sites: ['here'] },
];
const FURTHER: readonly Scene[] = [
  { command: firstSync, sites: ['here'] },
  { command: firstSync, sites: ['elsewhere'] },
  { command: firstSync, sites: ['here', 'folder'] },
  { command: veryFirstSync, sites: ['here', 'folder'] },
  { command: laterSync, sites: ['here'] },
  { command: laterSync, sites: ['elsewhere'] },
  { command: laterSync, sites: ['folder'] },
  { command: laterSync, sites: ['s3'] },
  { command: laterSync, sites: ['here', 'folder'] },
  { command: laterSync, sites: ['here', 's3'] },
  { command: laterSync, sites: ['here', 'elsewhere'] },
  { command: laterSync, sites: ['elsewhere', 'further'] },
  { command: laterSync, sites: ['elsewhere', 's3'] },
  { command: laterSync, sites: ['folder', 's3'] },
  { command: parallelism, sites: ['here', 'folder'] },
  { command: parallelism, sites: ['tables'] },
  { command: veryFirstSync, sites: ['tables'] },
  { command: laterSync, sites: ['here', 'tables'] },
  { command: upgradedSync, sites: ['tables'] },
  { command: backfillHistory, sites: ['tables'] },
  { command: forgetSource, sites: ['tables'] },
  { command: workerTurn('postgres'), sites: ['tables'] },
  { command: backfillHistory, sites: ['elsewhere', 'folder'] },
  { command: backfillHistory, sites: ['s3'] },
  { command: forgetSource, sites: ['here', 's3'] },
];
/** The last: from then on the tables have more columns. */
const LAST: readonly Scene[] = [{ command: rewriteLake, sites: ['folder'] }];

/** As many as one process has in hand at once. */
const AT_ONCE = 12;

let grounds: Grounds[];
let close: () => Promise<void>;
beforeAll(async () => {
  ({ grounds, close } = await openGrounds(AT_ONCE));
});
afterAll(() => close());

/** Labels of all steps that any scene took. */
const seen = new Set<string>();
const choose = isWhole ? everyStep : createSample(7);
const scenes = [...SAMPLED, ...(isWhole ? FURTHER : []), ...LAST];

it.skipIf(!hasRedis).each(scenes.map((scene) => [nameOf(scene), scene] as const))(
  '%s',
  { timeout: 900_000 },
  async (_name, scene) => {
    const steps = await discover(grounds[0] as Grounds, scene);
    for (const step of steps) seen.add(labelOf(step));
    // Of several sinks the steps are mixed, and one's commit says nothing of the other's files.
    if (scene.sites.length === 1) expect(faultsOfOrder(steps)).toEqual([]);
    const chosen = choose(steps);
    const { cases, killed, faults } = await killAtEach(grounds, scene, chosen);
    expect(faults).toEqual([]);
    // Work that goes on side by side is not the same twice: a few come to their end without ever coming to their step.
    expect(killed).toBeGreaterThanOrEqual(cases / 2);
  },
);

/** Whoever stands around a function can be walked around: a step that is known to be there must have been seen. */
it.skipIf(!hasRedis)(
  'has seen requests, pages, copies, merges, commits, renames, syncs to disk, ledger, leases and queues',
  () => {
    const known = [
      ...['GET events: sent', 'GET events: all read', 'PUT source.parquet: sent'],
      ...['copy attribution.leads: rows begin', 'update attribution.leads: sent', 'commit: answered'],
      ...['rename source.parquet', 'sync .source.parquet.*.tmp', 'sync date=*', 'link .source.parquet.lock'],
      ...['insert tributary.windows: sent', 'update tributary.leases: answered', 'insert attribution._receipts: sent'],
      // A worker that has been asked to stop by then fetches no next job.
      ...['moveToFinished: sent', 'move_to_completed_fetch: sent or move_to_completed: sent'],
    ];
    expect(known.filter((labels) => !labels.split(' or ').some((label) => seen.has(label)))).toEqual([]);
  },
);
