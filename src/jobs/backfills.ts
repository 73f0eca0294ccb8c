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

/** Nobody would wait for more; and every tick scans all windows that are not read yet. */
const MOST_WAITING = 20_000;

/** Refuses duplicate backfills. Callers also check before they compute the windows, as that costs requests. */
export async function checkNewBackfills(
  state: Queryable,
  asked: ReadonlyArray<Omit<BackfillRequest, 'chunks'>>,
): Promise<void> {
  const kept = 'nothing was added';
  const { duplicate, waiting } = await readQueuedLike(state, asked);
  if (duplicate !== undefined)
    throw new ConfigError(`backfill ${duplicate} already reads this range and has not ended`, {
      kept,
      next: 'wait for it, or cancel it first',
    });
  if (waiting >= MOST_WAITING)
    throw new ConfigError(`${waiting} windows of other backfills are already waiting`, {
      kept,
      next: 'wait until some are read, or cancel a backfill',
    });
}

/** Adds all backfills or none, each as a flow with one child job per window. Returns their ids. */
export async function enqueueBackfills(
  { state, queue }: BackfillDeps,
  requests: readonly BackfillRequest[],
): Promise<string[]> {
  const now = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const backfills = requests.map((request) => ({ ...request, id: `${now}-${randomBytes(3).toString('hex')}` }));
  // The state is written first: if a flow is lost, its windows are enqueued again from the state.
  await insertBackfills(state, backfills, (tx) => checkNewBackfills(tx, requests));
  for (const { id, chunks } of backfills) {
    const children = chunks.map(({ start }) => windowJob({ backfill: id, start }));
    if (children.length > 0) await ignoreOutage(queue.flow(parentJob({ backfill: id }), children));
  }
  // A fully certified range needs no worker.
  if (backfills.some(({ chunks }) => chunks.length === 0)) await finishBackfills(state);
  return backfills.map(({ id }) => id);
}

/** What a user may do with a backfill. A window being read is released after the current page; rows already read stay. */
const ACTIONS = {
  pause: { from: ['queued'], to: 'paused' },
  resume: { from: ['paused'], to: 'queued' },
  cancel: { from: ['queued', 'paused'], to: 'cancelled' },
  /** Requeues only the failed windows. */
  retry: { from: ['failed'], to: 'queued' },
} as const satisfies Readonly<Record<string, { from: readonly BackfillState[]; to: BackfillState }>>;

export type BackfillAction = keyof typeof ACTIONS;

export const actionsIn = (state: BackfillState): BackfillAction[] =>
  (Object.keys(ACTIONS) as BackfillAction[]).filter((action) => ACTIONS[action].from.some((from) => from === state));

export async function steerBackfill(deps: BackfillDeps, id: string, action: BackfillAction): Promise<void> {
  const { from, to } = ACTIONS[action];
  const { state } = deps;
  const isMoved = await moveBackfill(state, id, from, to);
  if (isMoved && to === 'queued') await promoteWindows(deps);
  if (isMoved) return;
  const [backfill] = await readBackfills(state, id);
  if (!backfill) throw new ConfigError(`there is no backfill "${id}"`, { next: 'tributary backfill list shows them' });
  throw new ConfigError(`backfill ${id} ${STATE_TEXT[backfill.state]}, so it cannot become ${to}`, {
    kept: 'nothing was changed',
    next: `only one that is ${from.join(' or ')} can`,
  });
}

/** Enqueues the windows that could be read now, in case the queue has lost their jobs. */
export async function enqueueWindows({ state, queue }: BackfillDeps): Promise<void> {
  for (const { id, start } of await nextWindows(state)) {
    await queue.enqueue('backfill', windowJob({ backfill: id, start }));
  }
}

/** Called when a stream becomes free: windows waiting for it run at once. A window that failed keeps its retry delay. */
export async function promoteWindows({ state, queue }: BackfillDeps): Promise<void> {
  for (const { id, start, tries } of await nextWindows(state)) {
    const job = windowJob({ backfill: id, start });
    await ignoreOutage(queue.enqueue('backfill', job));
    if (tries === 0) await ignoreOutage(queue.promote(job.id));
  }
}

/** Recovery: if the queue is unavailable, the state still has the work; a worker enqueues it once the queue is back. */
async function ignoreOutage(enqueued: Promise<void>): Promise<void> {
  await enqueued.catch((error: unknown) => {
    if (!(error instanceof RetryLater)) throw error;
  });
}

const STATE_TEXT: Readonly<Record<BackfillState, string>> = {
  queued: 'is under way',
  paused: 'is paused',
  cancelled: 'was cancelled',
  done: 'is done',
  failed: 'has failed windows',
};

/** Makes a stream due now, for any worker. Returns false if another process is already reading it. */
export async function syncNow(
  { state, queue }: { state: Database; queue: JobQueue },
  { source, stream }: SyncPayload,
): Promise<boolean> {
  if (await isLeased(state, source, stream)) return false;
  await makeDue(state, source, stream);
  await ignoreOutage(queue.enqueue('sync', syncJob({ source, stream })));
  return true;
}
