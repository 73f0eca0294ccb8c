import type { SyncProgress } from '../../sync/job.ts';

import { createLine, type ProgressLine } from './progress.ts';
import { figure } from './table.ts';
import type { Terminal } from './terminal.ts';
import { duration } from './words.ts';

/** The bar is as long as the window: what is filled has been read, and proven where it could be. */
const BAR = 20;

/** How a backfill goes: how much of the time asked for is covered, how fast, and how long it will still take. */
export function createBackfillLine(
  terminal: Terminal,
  streams: number,
  budgetShare: () => number | undefined,
): ProgressLine {
  const began = performance.now();
  return createLine(terminal, (all: readonly SyncProgress[]) => {
    const total = (of: (progress: SyncProgress) => number): number => all.reduce((sum, each) => sum + of(each), 0);
    const done = Math.min(1, total((each) => each.done ?? 0) / streams);
    const seconds = (performance.now() - began) / 1000;
    const share = budgetShare();
    const parts = [
      `${'█'.repeat(Math.floor(done * BAR)).padEnd(BAR, '░')} ${Math.floor(done * 100)} %`,
      `${figure(total((each) => each.rows))} rows`,
      `${figure(Math.round(total((each) => each.rows) / seconds))}/s`,
      `${figure(total((each) => each.requests))} req`,
      ...(share === undefined ? [] : [`budget ${Math.round(share * 100)} %`]),
      // The first per cent says nothing about the rest yet.
      ...(done > 0.01 && done < 1 ? [`${duration((seconds * (1 - done)) / done)} left`] : []),
    ];
    return parts.join(' · ');
  });
}
