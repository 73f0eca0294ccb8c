import type { Log } from '../model/log.ts';
import type { SyncProgress } from '../sync/job.ts';
import { duration, figure, type Terminal } from './terminal.ts';

/** What a command shows while it works: a line of progress, and one for each stream that is being tried again. */
interface ProgressLine {
  update(progress: SyncProgress): void;
  /** Removes every line. */
  clear(): void;
}

const PLAIN_LINE_EVERY_MS = 5000;

/** Progress of a sync: rows of each stream, and requests; of a first sync also how far it is and how long it will take. */
export function createProgressLine(terminal: Terminal): ProgressLine {
  const began = performance.now();
  return createLine(terminal, (all) => {
    const isOne = new Set(all.map(({ source }) => source)).size === 1;
    const rows = all.map((each) => `${isOne ? '' : `${each.source}/`}${each.stream} ${figure(each.rows)}`);
    const parts = [`rows: ${rows.join(' · ')}`, `requests: ${figure(total(all, ({ requests }) => requests))}`];
    return [...parts, ...paceOf(all, all.length, began)].join(' · ');
  });
}

/** The bar covers the window: the filled part was read, and proven as far as possible. */
const BAR = 20;

/** Progress of a backfill: how much of the range is covered, how fast, and the time left. */
export function createBackfillLine(
  terminal: Terminal,
  streams: number,
  budgetShare: () => number | undefined,
): ProgressLine {
  const began = performance.now();
  return createLine(terminal, (all) => {
    const done = doneOf(all, streams);
    const share = budgetShare();
    const parts = [
      `${'█'.repeat(Math.floor(done * BAR)).padEnd(BAR, '░')} ${Math.floor(done * 100)} %`,
      `${figure(total(all, ({ rows }) => rows))} rows`,
      `${figure(total(all, ({ requests }) => requests))} req`,
      ...(share === undefined ? [] : [`budget ${Math.round(share * 100)} %`]),
      ...paceOf(all, streams, began),
    ];
    return parts.join(' · ');
  });
}

const total = (all: readonly SyncProgress[], of: (progress: SyncProgress) => number): number =>
  all.reduce((sum, each) => sum + of(each), 0);

const doneOf = (all: readonly SyncProgress[], streams: number): number =>
  Math.min(1, total(all, ({ done = 0 }) => done) / streams);

/** A poll is over before anybody could read its speed. */
const PACE_AFTER_S = 2;

/** Rows a second, and the time left where that can be told: the first per cent is no basis for an estimate. */
function paceOf(all: readonly SyncProgress[], streams: number, began: number): string[] {
  const seconds = (performance.now() - began) / 1000;
  if (seconds < PACE_AFTER_S) return [];
  const done = doneOf(all, streams);
  const pace = `${figure(Math.round(total(all, ({ rows }) => rows) / seconds))}/s`;
  return done > 0.01 && done < 1 ? [pace, `${duration((seconds * (1 - done)) / done)} left`] : [pace];
}

/** The line shows the latest progress of every stream. What is done never becomes less. */
function createLine(terminal: Terminal, text: (all: readonly SyncProgress[]) => string): ProgressLine {
  const latest = new Map<string, SyncProgress>();
  let lastPlain = Date.now();

  return {
    update(progress) {
      const name = nameOf(progress);
      const before = latest.get(name);
      // A commit does not report how much is left; the last slice's figure still holds.
      latest.set(name, { ...progress, done: Math.max(before?.done ?? 0, progress.done ?? 0) });
      if (terminal.isInteractive) {
        terminal.live(name);
        terminal.live('progress', text([...latest.values()]));
      } else if (Date.now() - lastPlain >= PLAIN_LINE_EVERY_MS) {
        lastPlain = Date.now();
        terminal.err(`${text([...latest.values()])}\n`);
      }
    },
    clear: () => terminal.live(),
  };
}

const nameOf = ({ source, stream }: { source?: string; stream?: string }): string =>
  [source, stream].filter(Boolean).join('/');

/** What the API says of a request that failed and is sent again. */
interface Retry {
  source?: string;
  stream?: string;
  /** The attempt that failed. */
  attempt?: number;
  waitMs?: number;
}

/** Nobody reads a pipe as it comes: the first retry of a stream, and then one now and then. */
const PLAIN_RETRY_EVERY_MS = 30_000;
/** An answer takes a moment: the line of a retry goes if nothing was said of it for so long after the wait. */
const LINGER_MS = 3000;

/** A log that shows retries as one live line for each stream, or as a few plain lines in a pipe. They are logged as `debug`. */
export function withRetryLines(log: Log, terminal: Terminal): Log {
  const saidAt = new Map<string, number>();
  const ends = new Map<string, NodeJS.Timeout>();

  const show = (retry: Retry, message: string): void => {
    const { attempt = 0, waitMs = 0 } = retry;
    const name = nameOf(retry);
    const wait = waitMs >= 1000 ? ` in ${duration(waitMs / 1000)}` : '';
    const text = `${name}: attempt ${attempt + 1}${wait}, ${message}`;
    if (terminal.isInteractive) {
      terminal.live(name, text);
      clearTimeout(ends.get(name));
      ends.set(name, setTimeout(() => terminal.live(name), waitMs + LINGER_MS).unref());
    } else if (Date.now() - (saidAt.get(name) ?? Number.NEGATIVE_INFINITY) >= PLAIN_RETRY_EVERY_MS) {
      saidAt.set(name, Date.now());
      terminal.err(`${text}\n`);
    }
  };

  const around = (inner: Log, place: object): Log => ({
    debug: (fields, message) => inner.debug(fields, message),
    info: (fields, message) => inner.info(fields, message),
    error: (fields, message) => inner.error(fields, message),
    warn(fields, message) {
      const retry: Retry = { ...place, ...fields };
      if (retry.attempt === undefined) return inner.warn(fields, message);
      inner.debug(fields, message);
      show(retry, message);
    },
    child: (fields) => around(inner.child(fields), { ...place, ...fields }),
  });
  return around(log, {});
}
