import { toIso } from '../../model/instant.ts';
import { rangeOf } from '../windows-to-read.ts';
import { type SinkResult, totalOf, type VerifyResult } from './comparison.ts';
import type { Repair } from './verify.ts';

/** The result before and after the repair, and the error that stopped it. */
export const reportRepair = ({ before, after, fault }: Repair) => ({
  ...reportResult(before),
  repaired: after ? reportResult(after) : null,
  error: fault ? { message: fault.message, kept: fault.kept ?? null, next: fault.next ?? null } : null,
});

export type RepairReport = ReturnType<typeof reportRepair>;
export type VerifyReport = ReturnType<typeof reportResult>;

/** The result for machines. Times are ISO texts; examples name events and columns, never values. */
const reportResult = ({ window, sinks, doubts, ...result }: VerifyResult) => ({
  ...result,
  ...rangeOf(window),
  sinks: sinks.map(reportSink),
  notComparable: doubts.map((doubt) => ({ ...rangeOf(doubt), note: doubt.note })),
});

const reportSink = (result: SinkResult) => ({
  sink: result.sink,
  ...totalOf(result),
  days: result.days.map(({ day, ...counts }) => ({ day: toIso(day).slice(0, 10), ...counts })),
  neverRead: result.neverRead.map(rangeOf),
  miscounted: result.miscounted.map(({ ledger, sink, ...window }) => ({ ...rangeOf(window), ledger, sink })),
  foreign: result.foreign.map(({ what, ...window }) => ({ ...rangeOf(window), what })),
  examples: result.examples.map((example) => ({ ...example, at: toIso(example.at) })),
});
