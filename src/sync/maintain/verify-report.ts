import { toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import type { Difference } from '../../sinks/sink.ts';
import { type Counts, type SinkResult, totalOf, type VerifyResult } from './comparison.ts';
import type { Repair } from './verify.ts';

/** The result for machines. Times are ISO texts; examples name events and columns, never values. */
export interface VerifyReport {
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  /** What the sinks were compared with. */
  against: string;
  requests: number;
  events: number;
  sinks: SinkReport[];
  /** Windows that could not be read to the end, so that extra rows cannot be told. */
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
  /** Windows that were never read into this sink, so that missing events are expected. */
  neverRead: Range[];
  /** Windows whose number of rows in the ledger is not that of the sink. */
  miscounted: Array<Range & { ledger: number; sink: number }>;
  /** Days that hold rows of another writer. */
  foreign: Array<Range & { what: string }>;
  /** The first few. */
  examples: Array<Omit<Difference, 'at'> & { at: string }>;
}

/** The result before and after the repair, and the error that stopped it. */
export interface RepairReport extends VerifyReport {
  repaired: VerifyReport | null;
  error: { message: string; kept: string | null; next: string | null } | null;
}

export const reportRepair = ({ before, after, fault }: Repair): RepairReport => ({
  ...reportResult(before),
  repaired: after ? reportResult(after) : null,
  error: fault ? { message: fault.message, kept: fault.kept ?? null, next: fault.next ?? null } : null,
});

const reportResult = ({ window, sinks, doubts, ...result }: VerifyResult): VerifyReport => ({
  ...result,
  ...rangeOf(window),
  sinks: sinks.map(reportSink),
  notComparable: doubts.map((doubt) => ({ ...rangeOf(doubt), note: doubt.note })),
});

const reportSink = (result: SinkResult): SinkReport => ({
  sink: result.sink,
  ...totalOf(result),
  days: result.days.map(({ day, ...counts }) => ({ day: toIso(day).slice(0, 10), ...counts })),
  neverRead: result.neverRead.map(rangeOf),
  miscounted: result.miscounted.map(({ ledger, sink, ...window }) => ({ ...rangeOf(window), ledger, sink })),
  foreign: result.foreign.map(({ what, ...window }) => ({ ...rangeOf(window), what })),
  examples: result.examples.map((example) => ({ ...example, at: toIso(example.at) })),
});

const rangeOf = ({ start, end }: Window): Range => ({ from: toIso(start), to: toIso(end) });
