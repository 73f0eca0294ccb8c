import type { SyncProgress } from '../../sync/job.ts';
import { figure } from './table.ts';
import type { Terminal } from './terminal.ts';

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
export function createLine(terminal: Terminal, text: (all: readonly SyncProgress[]) => string): ProgressLine {
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
