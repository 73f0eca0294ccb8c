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

export function createProgressLine(terminal: Terminal): ProgressLine {
  const latest = new Map<string, SyncProgress>();
  let isShown = false;
  let lastPlain = Date.now();

  const text = (): string => {
    const all = [...latest.values()];
    const isOne = new Set(all.map(({ source }) => source)).size === 1;
    const rows = all.map((each) => `${isOne ? '' : `${each.source}/`}${each.stream} ${figure(each.rows)}`);
    const requests = all.reduce((sum, each) => sum + each.requests, 0);
    return `rows: ${rows.join(' · ')} · requests: ${figure(requests)}`;
  };

  return {
    update(progress) {
      latest.set(`${progress.source}/${progress.stream}`, progress);
      if (terminal.isInteractive) {
        terminal.err(`\r\x1b[2K${text().slice(0, terminal.columns - 1)}`);
        isShown = true;
      } else if (Date.now() - lastPlain >= PLAIN_LINE_EVERY_MS) {
        lastPlain = Date.now();
        terminal.err(`${text()}\n`);
      }
    },
    clear() {
      if (isShown) terminal.err('\r\x1b[2K');
      isShown = false;
    },
  };
}
