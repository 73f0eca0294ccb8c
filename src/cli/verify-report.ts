import { toIso } from '../model/instant.ts';
import { describeWindow } from '../model/window.ts';
import type { Repair } from '../sync/repair-stream.ts';
import { type SinkVerdict, totalOf, type Verdict } from '../sync/verdict.ts';
import { figure, table } from './terminal/table.ts';

const SHOWN = 5;

/** What a comparison found, and what came of the repair. */
export function describeRepair({ before, after, fault }: Repair): string {
  const lines = [describeVerdict(before)];
  if (fault) lines.push(`the repair was stopped: ${fault.describe()}`);
  if (after) lines.push('after the repair:', describeVerdict(after));
  return lines.join('\n');
}

function describeVerdict(verdict: Verdict): string {
  const { source, stream, window, against, events, requests, sinks, doubts } = verdict;
  const cost = requests > 0 ? `, requests: ${figure(requests)}` : '';
  return [
    `${source}/${stream} ${describeWindow(window)}`,
    `  ${against}: ${figure(events)} events${cost}`,
    ...sinks.map((sink) => describeSink(sink)),
    ...doubts.map((doubt) => `  not comparable: ${describeWindow(doubt)}: ${doubt.note}`),
  ].join('\n');
}

function describeSink(verdict: SinkVerdict): string {
  const { sink, days, examples, windows, neverRead } = verdict;
  if (windows.length === 0) return `  ${sink}: as it should be, every day of ${days.length}`;
  const total = totalOf(verdict);
  const rows = days
    .filter(({ missing, extra, different }) => missing + extra + different > 0)
    .map((day) => [toIso(day.day).slice(0, 10), ...figures(day)]);
  const lines = table(['day', 'events', 'missing', 'extra', 'different'], [...rows, ['all days', ...figures(total)]]);
  return [
    `  ${sink}: NOT as it should be`,
    ...lines.split('\n').map((line) => `  ${line}`),
    ...examples.slice(0, SHOWN).map(({ kind, id, at, columns }) => {
      const fields = columns.length > 0 ? ` in ${columns.join(', ')}` : '';
      return `  e.g. ${kind}: ${id} of ${toIso(at)}${fields}`;
    }),
    ...neverRead.map((window) => `  never read into ${sink}: ${describeWindow(window)}`),
    ...(neverRead.length > 0 ? ['  what is missing there comes with a sync, a backfill or --repair'] : []),
  ].join('\n');
}

const figures = (of: { events: number; missing: number; extra: number; different: number }): string[] =>
  [of.events, of.missing, of.extra, of.different].map(figure);
