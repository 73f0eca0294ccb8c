import type { Log } from '../model/log.ts';
import type { SyncDeps, SyncProgress } from '../sync/job.ts';
import { counted, duration, figure, type Terminal, wrap } from './terminal.ts';

const PLAIN_LINE_EVERY_MS = 5000;

/** Progress of a sync: rows of each stream and requests; during a first sync also the share done and the time left. */
export function createProgressLine(terminal: Terminal, streams: number) {
  const began = performance.now();
  return createLine(terminal, (all) => {
    const isOne = new Set(all.map(({ source }) => source)).size === 1;
    const each = all.map(({ source, stream, rows }) => `${isOne ? '' : `${source}/`}${stream} ${figure(rows)}`);
    const sum = figure(total(all, ({ rows }) => rows));
    const requests = `requests: ${figure(total(all, (one) => one.requests))}`;
    const pace = paceOf(all, streams, began);
    if (pace.length > 1) pace.splice(1, 0, percentOf(doneOf(all, streams)));
    return [
      [`rows: ${each.join(' · ')}`, requests, ...pace],
      [`rows: ${sum}`, requests, ...pace],
      [`rows: ${sum}`, ...pace],
    ];
  });
}

/** The width of the bar. Its filled part was read, and proven as far as possible. */
const BAR = 20;

/** Progress of a backfill: how much of the range is covered, how fast, and the time left. */
export function createBackfillLine(
  terminal: Terminal,
  streams: number,
  budgetShare: () => number | undefined = () => undefined,
) {
  const began = performance.now();
  return createLine(terminal, (all) => {
    const done = doneOf(all, streams);
    const share = budgetShare();
    const budget = share === undefined ? [] : [`budget ${Math.round(share * 100)}%`];
    const bar = `${'█'.repeat(Math.floor(done * BAR)).padEnd(BAR, '░')} ${percentOf(done)}`;
    const read = total(all, (one) => one.rows);
    const rows = counted(read, 'row');
    const requests = `${figure(total(all, (one) => one.requests))} req`;
    const pace = paceOf(all, streams, began);
    return [
      [bar, rows, requests, ...budget, ...pace],
      [bar, rows, requests, ...pace],
      [bar, rows, ...pace],
      [bar, ...pace.slice(1)],
    ];
  });
}

const total = (all: readonly SyncProgress[], of: (progress: SyncProgress) => number): number =>
  all.reduce((sum, each) => sum + of(each), 0);

const doneOf = (all: readonly SyncProgress[], streams: number): number =>
  Math.min(1, total(all, ({ done = 0 }) => done) / streams);

const percentOf = (done: number): string => `${Math.floor(done * 100)}%`;

/** A poll ends before anybody could read its speed. */
const PACE_AFTER_S = 2;

/** Rows a second, and the time left, except during the first percent, which is too little for an estimate. */
function paceOf(all: readonly SyncProgress[], streams: number, began: number): string[] {
  const seconds = (performance.now() - began) / 1000;
  if (seconds < PACE_AFTER_S) return [];
  const done = doneOf(all, streams);
  const pace = `${figure(Math.round(total(all, ({ rows }) => rows) / seconds))}/s`;
  return done > 0.01 && done < 1 ? [pace, `${duration((seconds * (1 - done)) / done)} left`] : [pace];
}

/**
 * Shows the latest progress of every stream, which never decreases. `forms` returns versions of the line, from the most complete
 * to the most important part, the time left. The first version that fits is shown.
 */
function createLine(terminal: Terminal, forms: (all: readonly SyncProgress[]) => string[][]) {
  const latest = new Map<string, SyncProgress>();
  let lastPlain = Date.now();

  return {
    update(progress: SyncProgress): void {
      const name = nameOf(progress);
      const before = latest.get(name);
      // A report after a commit lacks `done`, and the rows read since.
      const done = Math.max(before?.done ?? 0, progress.done ?? 0);
      latest.set(name, { ...progress, done, rows: Math.max(before?.rows ?? 0, progress.rows) });
      if (terminal.isInteractive) {
        terminal.live(name);
        const lines = forms([...latest.values()]).map((parts) => parts.join(' · '));
        terminal.live('progress', lines.find((line) => line.length < terminal.columns) ?? lines.at(-1));
      } else if (Date.now() - lastPlain >= PLAIN_LINE_EVERY_MS) {
        lastPlain = Date.now();
        terminal.err(`${forms([...latest.values()])[0]?.join(' · ')}\n`);
      }
    },
    clear: () => terminal.live(),
  };
}

const nameOf = ({ source, stream }: { source?: string; stream?: string }): string =>
  [source, stream].filter(Boolean).join('/');

/** Prints which process holds the stream that a command waits for, and an alternative to waiting. */
export const waitsTo =
  (terminal: Terminal, instead = ''): NonNullable<SyncDeps['onWait']> =>
  ({ source, stream, holder }) => {
    terminal.live();
    terminal.err(`${source}/${stream}: waiting for ${holder}, which holds the stream's lease${instead}\n`);
  };

/** Prints notices while a command is running. */
export const noticesTo =
  (terminal: Terminal): NonNullable<SyncDeps['onNotice']> =>
  ({ source, stream, text }) =>
    terminal.err(`${wrap(`note: ${source}/${stream}: ${text}`, 6, terminal.columns)}\n`);

/** The fields that the API client logs when it retries a request. */
interface Retry {
  source?: string;
  stream?: string;
  attempt?: number;
  waitMs?: number;
  status?: number;
}

/** In a pipe, a stream's first retry is printed, then one per interval. */
const PLAIN_RETRY_EVERY_MS = 30_000;
/** A retry's line is removed this long after its wait, unless the request fails again. */
const LINGER_MS = 3000;

/** A log that shows retries as one live line for each stream, or as a few plain lines in a pipe. They are logged as `debug`. */
export function withRetryLines(log: Log, terminal: Terminal): Log {
  const saidAt = new Map<string, number>();
  const ends = new Map<string, NodeJS.Timeout>();

  const show = (retry: Retry, message: string): void => {
    const { attempt = 0, waitMs = 0, status } = retry;
    // Normal on a busy machine, where well-paced requests may arrive together. The summary counts them.
    if (status === 429 && attempt === 1 && waitMs < LINGER_MS) return;
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
