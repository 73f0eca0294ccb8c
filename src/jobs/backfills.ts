import { randomBytes } from 'node:crypto';
import {
  type Backfill,
  type BackfillRequest,
  type BackfillState,
  finishBackfills,
  insertBackfills,
  moveBackfill,
  nextWindows,
  readBackfills,
  readQueuedLike,
  requeueFailed,
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

/**
 * Refuses what is asked for by mistake, or twice because nothing seemed to happen: it would be read once more, for hours. Asked when they are
 * added; and before that where finding their windows takes requests.
 */
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

/**
 * Gives backfills to the queue, all of them or none: a flow each, with a child per window. Returns their ids, by which they are
 * paused, resumed and so on.
 */
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

/** What is being read is given back after the page in hand; the rest waits. */
export const pauseBackfill = (deps: BackfillDeps, id: string): Promise<void> =>
  move(deps, id, { from: ['queued'], to: 'paused' });

export async function resumeBackfill(deps: BackfillDeps, id: string): Promise<void> {
  await move(deps, id, { from: ['paused'], to: 'queued' });
  await promoteWindows(deps);
}

/** For good. What it has read stays. */
export const cancelBackfill = (deps: BackfillDeps, id: string): Promise<void> =>
  move(deps, id, { from: ['queued', 'paused'], to: 'cancelled' });

/** Reads again the windows that failed, and only those. */
export async function retryBackfill(deps: BackfillDeps, id: string): Promise<void> {
  if (!(await requeueFailed(deps.state, id))) throw await notMoved(deps, id, { from: ['failed'], to: 'queued' });
  await promoteWindows(deps);
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

interface Move {
  from: readonly BackfillState[];
  to: BackfillState;
}

async function move(deps: BackfillDeps, id: string, { from, to }: Move): Promise<void> {
  if (!(await moveBackfill(deps.state, id, from, to))) throw await notMoved(deps, id, { from, to });
}

async function notMoved({ state }: BackfillDeps, id: string, { from, to }: Move): Promise<ConfigError> {
  const [backfill]: Array<Backfill | undefined> = await readBackfills(state, id);
  if (!backfill) return new ConfigError(`there is no backfill "${id}"`, { next: 'tributary backfill list shows them' });
  return new ConfigError(`backfill ${id} ${WORDS[backfill.state]}, so it cannot become ${to}`, {
    kept: 'nothing was changed',
    next: `only one that is ${from.join(' or ')} can`,
  });
}

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
