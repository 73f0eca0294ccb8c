import type { ForeignRows } from '../../cursor/holdings/attestations.ts';
import type { Miscount } from '../../cursor/holdings/window-rows.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, holds, startOfDay, type Window } from '../../model/window.ts';
import type { Difference } from '../../sinks/sink.ts';
import { sum } from '../estimate.ts';
import { addUnproven, type Unproven } from '../windows-to-read.ts';

export interface VerifyResult {
  source: string;
  stream: StreamName;
  window: Window;
  against: string;
  requests: number;
  events: number;
  sinks: readonly SinkResult[];
  /** Windows that could not be read completely. Missing rows can be found there, but not extra ones. */
  doubts: readonly Unproven[];
}

export interface SinkResult {
  sink: string;
  days: readonly DayResult[];
  examples: readonly Difference[];
  /** Windows with differences, which a repair has to read again. */
  windows: readonly Window[];
  /** Days with differences although they were read into this sink. */
  refuted: readonly Window[];
  /** Windows that were never read into this sink, where missing events are expected. */
  neverRead: readonly Window[];
  /** Windows whose row counts in ledger and sink differ. */
  miscounted: readonly Miscount[];
  foreign: readonly ForeignRows[];
}

interface DayResult extends Counts {
  day: Instant;
  events: number;
}

type Counts = Record<Difference['kind'], number>;

export const isClean = ({ sinks }: VerifyResult): boolean =>
  sinks.every(({ windows, miscounted, foreign }) => windows.length + miscounted.length + foreign.length === 0);

export function totalOf({ days }: SinkResult): Counts & { events: number } {
  const all = (of: 'events' | keyof Counts): number => sum(days.map((day) => day[of]));
  return { events: all('events'), missing: all('missing'), extra: all('extra'), different: all('different') };
}

const EXAMPLES = 20;

export type FromLedger = Pick<SinkResult, 'neverRead' | 'miscounted' | 'foreign'>;

interface ResultOptions extends Pick<VerifyResult, 'source' | 'stream' | 'window' | 'against'> {
  sinks: ReadonlyArray<{ name: string } & FromLedger>;
}

export function createVerifyResult({ sinks, ...subject }: ResultOptions) {
  const doubts = new Map<Instant, Unproven>();
  let events = 0;
  const bySink = new Map(
    sinks.map(({ name, ...ledger }) => [
      name,
      {
        days: new Map<Instant, DayResult>(),
        examples: [] as Difference[],
        windows: [] as Window[],
        refuted: new Set<Instant>(),
        ...ledger,
      },
    ]),
  );
  const dayOf = (days: Map<Instant, DayResult>, at: Instant): DayResult => {
    const day = startOfDay(at);
    const known = days.get(day) ?? { day, events: 0, missing: 0, extra: 0, different: 0 };
    days.set(day, known);
    return known;
  };
  for (const { days } of bySink.values()) {
    for (let day = startOfDay(subject.window.start); day < subject.window.end; day += DAY_MS) dayOf(days, day);
  }

  return {
    events: () => events,
    add(sink: string, chunk: Chunk, rows: readonly Row[], differences: readonly Difference[]): void {
      const result = bySink.get(sink);
      if (!result) throw new Error(`${sink} is not being verified`);
      if (sink === sinks[0]?.name) events += rows.length;
      for (const { at } of rows) dayOf(result.days, at).events++;
      for (const { kind, at } of differences) {
        dayOf(result.days, at)[kind]++;
        if (!result.neverRead.some((window) => holds(window, at))) result.refuted.add(startOfDay(at));
      }
      result.examples.push(...differences.slice(0, EXAMPLES - result.examples.length));
      if (differences.length > 0) result.windows.push(chunk.window);
      for (const doubt of chunk.doubts) doubts.set(doubt.start, doubt);
    },
    close: (requests: number): VerifyResult => ({
      ...subject,
      requests,
      events,
      doubts: [...doubts.values()],
      sinks: [...bySink].map(([sink, { days, refuted, ...rest }]) => ({
        sink,
        ...rest,
        refuted: [...refuted].map((day) => ({ start: day, end: day + DAY_MS })),
        days: [...days.values()].sort((a, b) => a.day - b.day),
      })),
    }),
  };
}

export interface Found {
  window: Window;
  rows: readonly Row[];
  doubt: string | undefined;
}

/** Several adjacent parts, so that one query looks up many rows. */
export interface Chunk {
  window: Window;
  rows: readonly Row[];
  doubts: readonly Unproven[];
}

const CHUNK_ROWS = 5000;

export async function* chunked(parts: AsyncIterable<Found>): AsyncGenerator<Chunk> {
  let open: { window: Window; rows: Row[]; doubts: Unproven[] } | undefined;
  for await (const { window, rows, doubt } of parts) {
    open ??= { window: { ...window }, rows: [], doubts: [] };
    open.window.end = window.end;
    open.rows.push(...rows);
    if (doubt !== undefined) addUnproven(open.doubts, { ...window, note: doubt });
    if (open.rows.length < CHUNK_ROWS) continue;
    yield open;
    open = undefined;
  }
  if (open) yield open;
}

/** Cuts pages that are sorted by time into adjacent windows. Rows of one instant are never split. */
export async function* cutPages(pages: AsyncIterable<readonly Row[]>, { start, end }: Window): AsyncGenerator<Found> {
  let from: Instant = start;
  let waiting: Row[] = [];
  for await (const page of pages) {
    waiting.push(...page);
    const last = waiting.at(-1)?.at ?? from;
    const rows = waiting.filter((row) => row.at < last);
    if (rows.length === 0) continue;
    yield { window: { start: from, end: last }, rows, doubt: undefined };
    waiting = waiting.filter((row) => row.at >= last);
    from = last;
  }
  yield { window: { start: from, end }, rows: waiting, doubt: undefined };
}
