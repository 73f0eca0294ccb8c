import { toIso } from '../model/instant.ts';
import { describeWindow, type Window } from '../model/window.ts';
import type { ExportReport } from '../sync/export-stream.ts';
import { figure } from './terminal/table.ts';

/** For people: what is in the file, and how far it can be trusted. */
export function describeExport(report: ExportReport, out: string, window: Window): string {
  const { rows, requests, doubts, rejected, changed, settledThrough } = report;
  return [
    `${figure(rows)} events in ${out === '-' ? 'standard output' : out}, requests: ${figure(requests)}`,
    `range: ${describeWindow(window)}`,
    doubts.length === 0
      ? 'certified: every event of the range is there, each once'
      : 'NOT certified: some events may be missing',
    ...doubts.map((doubt) => `  ${describeWindow(doubt)}: ${doubt.note}`),
    ...(window.end > settledThrough ? [`note: events since ${toIso(settledThrough)} may still arrive late`] : []),
    ...(rejected > 0 ? [`note: ${figure(rejected)} records could not be used and were left out`] : []),
    ...(changed > 0
      ? [`note: ${figure(changed)} events came twice with different times; the older is in the file`]
      : []),
  ].join('\n');
}

/** The same for machines. */
export const exportJson = (
  { doubts, settledThrough, ...figures }: ExportReport,
  out: string,
  window: Window,
): object => ({
  out,
  from: toIso(window.start),
  to: toIso(window.end),
  certified: doubts.length === 0,
  doubts: doubts.map(({ start, end, note }) => ({ from: toIso(start), to: toIso(end), note })),
  settledThrough: toIso(settledThrough),
  ...figures,
});
