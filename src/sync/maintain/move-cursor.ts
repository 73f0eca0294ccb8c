import { randomUUID } from 'node:crypto';
import { type Cursor, forgetFeed, readCursor, rewind } from '../../cursor/cursors.ts';
import type { Database } from '../../cursor/database/index.ts';
import { lockCertified } from '../../cursor/holdings/attestations.ts';
import { recountRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence, type Lease, withLease } from '../../cursor/leases.ts';
import { applyAdvance, type Feed, readLedger } from '../../cursor/ledger.ts';
import { Certified } from '../../extract/proof/certified.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { STREAMS } from '../../model/streams.ts';
import { describeInstant, gaps } from '../../model/window.ts';
import { countsIn } from '../../sinks/sink.ts';
import type { MaintainDeps } from '../job.ts';

export interface Move {
  to: Instant;
  /** Allows to move forward over time that was never read. */
  force: boolean;
}

export const BY_HAND = 'called complete by hand, not proven: events may be missing here';

/** Refuses invalid moves. To move several cursors, check all of them first, so that either all move or none. */
export async function checkMove(
  state: Database,
  feed: Feed,
  { to, force }: Move,
): Promise<{ cursor: Cursor; floor: Instant }> {
  const where = { source: feed.source, stream: feed.stream };
  const cursor = await readCursor(state, feed);
  if (!cursor) {
    throw new ConfigError(`nothing has been synced into ${feed.sink} yet: there is no cursor to move`, {
      where,
      next: 'run tributary sync; `since` in the config says where it begins',
    });
  }
  if (to < cursor.since) {
    throw new ConfigError(
      `${describeInstant(to)} is before the start of this stream, ${describeInstant(cursor.since)}`,
      {
        where,
        next: 'move `since` in the config back instead, or keep more in the sink (`keep`), and run tributary sync',
      },
    );
  }
  const floor = cursor.completeThrough ?? cursor.since;
  if (to > floor && !force) {
    throw new ConfigError(
      `${describeInstant(to)} is after the watermark, ${describeInstant(floor)}: the time in between is not certified`,
      {
        where,
        kept: 'nothing was changed',
        next: 'run tributary sync to prove it; --force calls it complete unread, and events may be missing for good',
      },
    );
  }
  return { cursor, floor };
}

/** Moves the watermark of a feed. Moving back is always safe, as that time is read again. Moving forward gives up the proof. */
export function moveCursor(deps: MaintainDeps, feed: Feed, { to, force }: Move): Promise<void> {
  const sink = deps.sinks.find(({ name }) => name === feed.sink);
  const count = sink?.attest && countsIn(sink, STREAMS[feed.stream], feed.source);
  return withFeed(deps, feed, async ({ epoch }) => {
    const { cursor, floor } = await checkMove(deps.state, feed, { to, force });
    if (to <= floor) {
      await deps.state.transaction(async (tx) => {
        await checkFence(tx, { ...feed, epoch });
        const [cut] = await lockCertified(tx, feed, [{ start: to - 1, end: to }]);
        const [held] = count && cut ? await count([cut]) : [cut?.rows];
        // A window with missing rows is read again completely: counting the rows of its remaining part would hide the loss.
        const from = cut && held !== cut.rows ? cut.start : to;
        await rewind(tx, feed, from);
        if (count && from === to) await recountRows(tx, feed, { start: to - 1, end: to }, count);
      });
      return;
    }
    const proven = (await readLedger(deps.state, feed, floor)).filter((entry) => entry.certified);
    const spans = gaps(proven, { start: floor, end: to }).map((gap) => ({
      ...gap,
      certified: Certified.onRecord(gap),
      rows: 0,
      note: BY_HAND,
    }));
    const base = { ...feed, epoch, since: cursor.since, newestSeen: undefined };
    const rows = count && { added: [], removed: [], count };
    const advance = { ...base, commitId: randomUUID(), runId: 'by hand', spans };
    await deps.state.transaction(async (tx) => applyAdvance(tx, await checkFence(tx, advance), advance, rows));
  });
}

/** Deletes cursor and ledger of a feed. Its rows stay, and the next sync reads everything again. */
export function resetCursor(deps: MaintainDeps, feed: Feed): Promise<void> {
  return withFeed(deps, feed, ({ epoch }) =>
    deps.state.transaction(async (tx) => {
      await checkFence(tx, { ...feed, epoch });
      await forgetFeed(tx, feed);
    }),
  );
}

/** Runs `work` under the lease, so that no sync is running, and after the sink has reported its commits to the state. */
function withFeed(deps: MaintainDeps, feed: Feed, work: (lease: Lease) => Promise<void>): Promise<void> {
  const { state, sinks, holder } = deps;
  const { source, stream } = feed;
  // Undefined if the config no longer has the sink.
  const sink = sinks.find(({ name }) => name === feed.sink);
  return withLease(state, source, stream, holder, async (lease) => {
    await sink?.recover?.({ source, stream, epoch: lease.epoch });
    await sink?.publishProgress?.({ source, stream });
    await work(lease);
    await sink?.publishProgress?.({ source, stream });
  });
}
