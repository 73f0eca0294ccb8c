import type { Queryable } from '../cursor/database/index.ts';
import { appendRunLog, MOST_KEPT, type RunLine, type RunLog, type RunRequest, trimRunLog } from '../cursor/run-log.ts';
import { type RunProgress, recordProgress } from '../cursor/runs.ts';
import { Fault, statusOf } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { type Line, type Log, listen, observe, runOf, SECRET_FIELDS, type Span, type SpanEnd } from '../model/log.ts';

/** Frequent enough to follow a run live; a poll usually ends before the first write, and only writes at its end. */
const EVERY_MS = 2000;
const MOST_CHARACTERS = 1000;

/** Stores a run's log lines, requests and progress in the state, where the control room can read them whichever process runs it. */
export function keepRunLog(state: Queryable, run: string, log: Log, soFar: () => RunProgress, everyMs = EVERY_MS) {
  const waiting: { line: RunLine[]; request: RunRequest[] } = { line: [], request: [] };
  const written = { line: 0, request: 0 };
  let writing = Promise.resolve();

  const unlisten = listen((line) => {
    if (runOf(line.span) === run) waiting.line.push(lineOf(line));
  });
  const unobserve = observe((span) => {
    const at = Date.now();
    return (end) => {
      if (span.name === 'request' && runOf(span) === run) waiting.request.push(requestOf(span, at, end));
    };
  });

  async function write(db: Queryable): Promise<void> {
    for (const kind of ['line', 'request'] as const) {
      const entries: readonly RunLog[typeof kind][number][] = waiting[kind].splice(0).slice(-MOST_KEPT[kind]);
      if (entries.length === 0) continue;
      await appendRunLog(db, run, kind, entries);
      written[kind] += entries.length;
      if (written[kind] > MOST_KEPT[kind]) await trimRunLog(db, run, kind);
    }
  }

  const timer = setInterval(() => {
    writing = writing
      .then(() => write(state))
      .then(() => recordProgress(state, run, soFar()))
      // Recovery: these entries are lost; they are informational, and nothing depends on them. The end of the run writes final counts.
      .catch((error: unknown) => log.debug({ run, reason: String(error) }, 'the log of a run could not be kept'));
  }, everyMs).unref();

  return {
    /** Stops recording. Remaining entries are stored by `write`. */
    async stop() {
      clearInterval(timer);
      unlisten();
      unobserve();
      await writing;
    },
    write,
  };
}

/** Fields that the run's page shows anyway, and secrets. */
const LEFT_OUT: readonly string[] = [...SECRET_FIELDS, 'source', 'stream', 'run'];

function lineOf({ level, fields, message }: Line): RunLine {
  const details = Object.entries(fields).flatMap(([name, value]) => {
    if (LEFT_OUT.includes(name)) return [];
    const text =
      value instanceof Error ? textOf(value) : ['string', 'number', 'boolean'].includes(typeof value) && String(value);
    return text ? [[name, text.slice(0, MOST_CHARACTERS)]] : [];
  });
  return {
    at: toIso(Date.now()),
    level,
    message: message.slice(0, MOST_CHARACTERS),
    details: Object.fromEntries(details),
  };
}

/** Messages of foreign errors may quote sensitive data: only their name and stack position are stored. */
const textOf = (error: Error): string =>
  error instanceof Fault ? error.message : `${error.name} ${/^ +(at .*)/m.exec(error.stack ?? '')?.[1] ?? ''}`;

function requestOf({ attributes }: Span, at: Instant, { seconds, error }: SpanEnd): RunRequest {
  const { start, end, sortOrder = '', page, pageSize, limit = pageSize, rows } = attributes;
  return {
    at: toIso(at),
    from: start === undefined ? null : toIso(Number(start)),
    to: end === undefined ? null : toIso(Number(end)),
    order: String(sortOrder),
    page: Number(page),
    limit: Number(limit),
    rows: error === undefined ? Number(rows) : null,
    ms: Math.round(seconds * 1000),
    status: statusOf(error) ?? null,
  };
}
