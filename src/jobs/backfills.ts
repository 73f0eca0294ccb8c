import { randomBytes } from 'node:crypto';
import {
  type BackfillRequest,
  type BackfillState,
  finishBackfills,
  insertBackfills,
  moveBackfill,
  nextWindows,
  readBackfills,
  readQueuedLike,
} from '../cursor/backfills.ts';
import type { Database, Queryable } from '../cursor/database/index.ts';
import { isLeased, makeDue } from '../cursor/schedules.ts';
import { ConfigError, RetryLater } from '../model/errors.ts';
import type { JobQueue } from './bull.ts';
import { parentJob, type SyncPayload, syncJob, windowJob } from './payloads.ts';

export { type Backfill, type BackfillRequest, readBackfills } from '../cursor/backfills.ts';

export interface BackfillDeps {
  state: Database;
  queue: Pick<JobQueue, 'flow' | 'enqueue' | 'promote'>;
}

/** More than anybody waits for; every one of them is looked at again and again until it is read. */
const MOST_WAITING = 20_000;

/** Refuses what is asked for twice: it would be read twice. Asked early, too: finding the windows takes requests. */
export async function checkNewBackfills(
  state: Queryable,
  asked: ReadonlyArray<Omit<BackfillRequest, 'chunks'>>,
): Promise<void> {
  const kept = 'nothing was added';
  const { twin, waiting } = await readQueuedLike(state, asked);
  if (twin !== undefined)
    throw new ConfigError(`backfill ${twin} already reads this range and has not ended`, {
      kept,
      next: 'wait for it, or cancel it first',
    });
  if (waiting >= MOST_WAITING)
    throw new ConfigError(`${waiting} windows of other backfills are already waiting`, {
      kept,
      next: 'wait until some are read, or cancel a backfill',
    });
}

/** All of them or none: a flow each, with a child per window. Returns their ids. */
export async function enqueueBackfills(
  { state, queue }: BackfillDeps,
  requests: readonly BackfillRequest[],
): Promise<string[]> {
  const now = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const backfills = requests.map((request) => ({ ...request, id: `${now}-${randomBytes(3).toString('hex')}` }));
  // The state first: a flow that is lost on the way is made again from it, window by window.
  await insertBackfills(state, backfills, (tx) => checkNewBackfills(tx, requests));
  for (const { id, chunks } of backfills) {
    const children = chunks.map(({ start }) => windowJob({ backfill: id, start }));
    if (children.length > 0) await hint(queue.flow(parentJob({ backfill: id }), children));
  }
  // What is certified already needs no worker.
  if (backfills.some(({ chunks }) => chunks.length === 0)) await finishBackfills(state);
  return backfills.map(({ id }) => id);
}

/** What a person may do with a backfill: what is being read is given back after the page in hand, and what was read stays. */
const STEPS = {
  pause: { from: ['queued'], to: 'paused' },
  resume: { from: ['paused'], to: 'queued' },
  cancel: { from: ['queued', 'paused'], to: 'cancelled' },
  /** Only the windows that failed. */
  retry: { from: ['failed'], to: 'queued' },
} as const satisfies Readonly<Record<string, { from: readonly BackfillState[]; to: BackfillState }>>;

export type BackfillAction = keyof typeof STEPS;

export const actionsIn = (state: BackfillState): BackfillAction[] =>
  (Object.keys(STEPS) as BackfillAction[]).filter((action) => STEPS[action].from.some((from) => from === state));

export async function steerBackfill(deps: BackfillDeps, id: string, action: BackfillAction): Promise<void> {
  const { from, to } = STEPS[action];
  const { state } = deps;
  const isMoved = await moveBackfill(state, id, from, to);
  if (isMoved && to === 'queued') await promoteWindows(deps);
  if (isMoved) return;
  const [backfill] = await readBackfills(state, id);
  if (!backfill) throw new ConfigError(`there is no backfill "${id}"`, { next: 'tributary backfill list shows them' });
  throw new ConfigError(`backfill ${id} ${WORDS[backfill.state]}, so it cannot become ${to}`, {
    kept: 'nothing was changed',
    next: `only one that is ${from.join(' or ')} can`,
  });
}

/** Windows that could be read now, given to a queue that may have forgotten them. */
export async function enqueueWindows({ state, queue }: BackfillDeps): Promise<void> {
  for (const { id, start } of await nextWindows(state)) {
    await queue.enqueue('backfill', windowJob({ backfill: id, start }));
  }
}

/** The stream is free: whoever waits for that need not wait longer. One that failed keeps the time it was given. */
export async function promoteWindows({ state, queue }: BackfillDeps): Promise<void> {
  for (const { id, start, tries } of await nextWindows(state)) {
    const job = windowJob({ backfill: id, start });
    await hint(queue.enqueue('backfill', job));
    if (tries === 0) await hint(queue.promote('backfill', job.id));
  }
}

/** Recovery: where the queue is away, the state knows what is wanted, and a worker tells the queue when it is back. */
async function hint(given: Promise<void>): Promise<void> {
  await given.catch((error: unknown) => {
    if (!(error instanceof RetryLater)) throw error;
  });
}

const WORDS: Readonly<Record<BackfillState, string>> = {
  queued: 'is under way',
  paused: 'is paused',
  cancelled: 'was cancelled',
  done: 'is done',
  failed: 'has failed windows',
};

/** A stream is due now, and a worker takes it up. False: somebody is at it already, and its rows are on their way. */
export async function syncNow(
  { state, queue }: { state: Database; queue: JobQueue },
  { source, stream }: SyncPayload,
): Promise<boolean> {
  if (await isLeased(state, source, stream)) return false;
  await makeDue(state, source, stream);
  await hint(queue.enqueue('sync', syncJob({ source, stream })));
  return true;
}
