import type { SyncProgress } from '../../sync/job.ts';
import { figure } from './table.ts';
import type { Terminal } from './terminal.ts';
import { duration } from './words.ts';

/** What is happening now: one line that is rewritten on a terminal, a plain line now and then elsewhere. */
export interface ProgressLine {
  update(progress: SyncProgress): void;
  /** Takes the line away; what comes next starts on a clean one. */
  clear(): void;
}

const PLAIN_LINE_EVERY_MS = 5000;

/** How a sync goes: rows of each stream, and requests. */
export const createProgressLine = (terminal: Terminal): ProgressLine =>
  createLine(terminal, (all) => {
    const isOne = new Set(all.map(({ source }) => source)).size === 1;
    const rows = all.map((each) => `${isOne ? '' : `${each.source}/`}${each.stream} ${figure(each.rows)}`);
    const requests = all.reduce((sum, each) => sum + each.requests, 0);
    return `rows: ${rows.join(' · ')} · requests: ${figure(requests)}`;
  });

/** The text is made of the latest news of every stream. */
function createLine(terminal: Terminal, text: (all: readonly SyncProgress[]) => string): ProgressLine {
  const latest = new Map<string, SyncProgress>();
  let isShown = false;
  let lastPlain = Date.now();

  return {
    update(progress) {
      const key = `${progress.source}/${progress.stream}`;
      // A commit knows nothing of how much is left; what a slice said of it still holds.
      latest.set(key, { done: latest.get(key)?.done ?? 0, ...progress });
      if (terminal.isInteractive) {
        terminal.err(`\r\x1b[2K${text([...latest.values()]).slice(0, terminal.columns - 1)}`);
        isShown = true;
      } else if (Date.now() - lastPlain >= PLAIN_LINE_EVERY_MS) {
        lastPlain = Date.now();
        terminal.err(`${text([...latest.values()])}\n`);
      }
    },
    clear() {
      if (isShown) terminal.err('\r\x1b[2K');
      isShown = false;
    },
  };
}

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
