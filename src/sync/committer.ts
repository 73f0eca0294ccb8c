import type { Tally } from '../cursor/runs.ts';
import type { Slice } from '../extract/reader.ts';
import { Fault } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { Sink } from '../sinks/sink.ts';
import type { Evolver } from './evolver.ts';
import { createSinkCommitter, type RunBase, type SinkCommitter } from './sink-committer.ts';

/** Carries what one reading brings into every sink that wants it. */
export interface Committer {
  /** To the sinks named, or to all. */
  add(slice: Slice, sinks?: ReadonlySet<string>): Promise<void>;
  /** Commits what is left and waits for it. */
  flush(): Promise<void>;
  /** Does something between two commits. What is added meanwhile is kept, as far as a batch goes, and committed afterwards. */
  between(work: () => Promise<void>): Promise<void>;
  /** What stopped a sink, if something did. */
  fault(): Fault | undefined;
}

export interface CommitterOptions {
  sinks: readonly Sink[];
  evolver: Evolver;
  /** The part of every advance that does not change during a run, except that the lease may be given away and taken again. */
  base: () => RunBase;
  tally: Tally;
  serverNow: () => Instant;
  onCommit: (through: Instant | undefined) => void;
}

/**
 * Each sink has its own batches and its own cursor. One that fails is left behind and told of at the end; the others get
 * everything, since the reading has been paid for.
 */
export function createCommitter(options: CommitterOptions): Committer {
  const { sinks, tally, serverNow, onCommit, evolver, base } = options;
  const committers = new Map<string, SinkCommitter>(
    sinks.map((sink, i) => [
      sink.name,
      // Every sink gets the same rows; the summary counts them once, as the first sink met them.
      createSinkCommitter({ sink, evolver, base, serverNow, onCommit, ...(i === 0 && { tally }) }),
    ]),
  );
  const failed = new Map<string, Fault>();

  const each = async (
    chosen: ReadonlySet<string> | undefined,
    work: (committer: SinkCommitter) => Promise<void>,
  ): Promise<void> => {
    const all = [...committers].filter(([name]) => !failed.has(name) && (!chosen || chosen.has(name)));
    // At once, not in turn: a slice is either in the batch of every sink or of none when somebody else asks for a flush.
    const outcomes = await Promise.allSettled(all.map(([, committer]) => work(committer)));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      const [name, error] = [all[i]?.[0] ?? '', outcome.reason];
      // Recovery: this sink stays where its cursor stands; when it was the last one there is nobody left to read for.
      if (!(error instanceof Fault)) throw error;
      failed.set(name, sinks.length > 1 ? error.at({ sink: name }) : error);
      if (failed.size === committers.size) throw error;
    }
  };

  return {
    async add(slice, chosen) {
      count(tally, slice);
      await each(chosen, (committer) => committer.add(slice));
    },
    flush: () => each(undefined, (committer) => committer.flush()),
    async between(work) {
      let gate = { open: (): void => {}, refuse: (_reason: unknown): void => {} };
      const opened = new Promise<void>((open, refuse) => {
        gate = { open, refuse };
      });
      opened.catch(() => {}); // Told by the commits that wait for it.
      try {
        await each(undefined, (committer) => committer.hold(opened));
        await work();
        gate.open();
      } catch (error) {
        // Recovery: none here. What waits behind the gate must not be committed any more, and says why.
        gate.refuse(error);
        throw error;
      }
    },
    fault: () => [...failed.values()][0],
  };
}

function count(tally: Tally, { rows }: Slice): void {
  for (const row of rows) {
    for (const name of row.contradictions) tally.contradictions[name] = (tally.contradictions[name] ?? 0) + 1;
    for (const name of row.misfits) tally.misfits[name] = (tally.misfits[name] ?? 0) + 1;
  }
}
