import { toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Window } from '../model/window.ts';
import type { Difference } from '../sinks/sink.ts';
import type { Repair } from './repair-stream.ts';
import { type Counts, type SinkVerdict, totalOf, type Verdict } from './verdict.ts';

/** What came of a comparison, for machines. Moments are ISO texts; examples name events and columns, never values. */
export interface VerdictReport {
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  /** What the sinks were held against. */
  against: string;
  requests: number;
  events: number;
  sinks: SinkReport[];
  /** Windows that could not be read to the end: there only what is missing can be told. */
  notComparable: Array<Range & { note: string }>;
}

interface Range {
  from: string;
  to: string;
}

interface SinkReport extends Counts {
  sink: string;
  events: number;
  days: Array<Counts & { day: string; events: number }>;
  /** What was never read into this sink: that events are missing there is no surprise. */
  neverRead: Range[];
  /** The first few. */
  examples: Array<Omit<Difference, 'at'> & { at: string }>;
}

/** The same after what differed was read again, and what stopped that. */
export interface RepairReport extends VerdictReport {
  repaired: VerdictReport | null;
  error: { message: string; kept: string | null; next: string | null } | null;
}

export const reportRepair = ({ before, after, fault }: Repair): RepairReport => ({
  ...reportVerdict(before),
  repaired: after ? reportVerdict(after) : null,
  error: fault ? { message: fault.message, kept: fault.kept ?? null, next: fault.next ?? null } : null,
});

const reportVerdict = ({ window, sinks, doubts, ...verdict }: Verdict): VerdictReport => ({
  ...verdict,
  ...rangeOf(window),
  sinks: sinks.map(reportSink),
  notComparable: doubts.map((doubt) => ({ ...rangeOf(doubt), note: doubt.note })),
});

const reportSink = (verdict: SinkVerdict): SinkReport => ({
  sink: verdict.sink,
  ...totalOf(verdict),
  days: verdict.days.map(({ day, ...counts }) => ({ day: toIso(day).slice(0, 10), ...counts })),
  neverRead: verdict.neverRead.map(rangeOf),
  examples: verdict.examples.map((example) => ({ ...example, at: toIso(example.at) })),
});

const rangeOf = ({ start, end }: Window): Range => ({ from: toIso(start), to: toIso(end) });
