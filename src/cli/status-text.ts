import type { SourceUse, StreamStatus } from '../sync/status.ts';
import { COVERAGE_LEGEND, coverageBar } from './terminal/coverage-bar.ts';
import { type FittedColumn, fittedTable } from './terminal/fitted-table.ts';
import { figure } from './terminal/table.ts';
import { counted, duration, minute } from './terminal/words.ts';
import { wrap } from './terminal/wrap.ts';

export interface StatusView {
  stateName: string;
  columns: number;
}

export function describeStatus(
  { streams, sources }: { streams: readonly StreamStatus[]; sources: readonly SourceUse[] },
  { stateName, columns }: StatusView,
): string {
  if (streams.length === 0)
    return `nothing has been synced yet (state: ${stateName})\nnext: tributary sync, or tributary demo`;
  return [
    tableOf(streams, columns),
    ...bars(streams, columns),
    // What is true of the stream is said once, however many sinks it has.
    ...[...new Set([...sources.flatMap(useOf), ...streams.flatMap(notesOn)])].map((line) => wrap(line, 2, columns)),
    '',
    `state: ${stateName} · times in UTC`,
  ].join('\n');
}

const COLUMNS: ReadonlyArray<FittedColumn<StreamStatus>> = [
  { header: 'stream', of: (s) => `${s.source}/${s.stream}` },
  { header: 'complete through', of: (s) => minute(s.completeThrough) || 'not proven yet' },
  { header: 'newest', of: (s) => minute(s.newestSeen), spare: 1 },
  { header: 'lag', of: (s) => (s.lagSeconds === null ? '' : duration(s.lagSeconds)), spare: 3 },
  {
    header: 'last run',
    of: ({ lastRun }) => (lastRun ? `${lastRun.state} ${minute(lastRun.startedAt).slice(5)}` : ''),
    spare: 2,
  },
  { header: 'sink', of: (s) => s.sink ?? '' },
];

/** The sink is worth its column only where there are several. */
const tableOf = (streams: readonly StreamStatus[], width: number): string =>
  fittedTable(
    COLUMNS.filter(({ header }) => header !== 'sink' || hasSeveralSinks(streams)),
    streams,
    width,
  );

const hasSeveralSinks = (streams: readonly StreamStatus[]): boolean =>
  new Set(streams.flatMap(({ sink }) => sink ?? [])).size > 1;

/** One bar a stream and sink, from where it begins to now. */
function bars(streams: readonly StreamStatus[], columns: number): string[] {
  const isMany = hasSeveralSinks(streams);
  const named = streams
    .filter(({ coverage }) => coverage.length > 0)
    .map((s) => ({ name: `${s.source}/${s.stream}${isMany ? ` ${s.sink}` : ''}`, ...s }));
  if (named.length === 0) return [];
  const wide = Math.max(...named.map(({ name }) => name.length));
  const room = Math.max(10, Math.min(columns, 120) - wide - '  2026-11-01    now'.length);
  const lines = named.map(({ name, since, coverage }) => {
    const spans = coverage.map(({ start, end, state }) => ({ start: Date.parse(start), end: Date.parse(end), state }));
    return `${name.padEnd(wide)}  ${since?.slice(0, 10)}  ${coverageBar(spans, room)}  now`;
  });
  return ['', ...lines, COVERAGE_LEGEND, ''];
}

function useOf({ source, requestsLastHour, tooManyRequestsLastHour, ...use }: SourceUse): string[] {
  if (requestsLastHour === 0) return [];
  const { requestsPerSecond, shareOfBudget } = use;
  const share = shareOfBudget === null ? '' : `, ${(shareOfBudget * 100).toFixed(1)} % of ${requestsPerSecond}/s`;
  const refused = tooManyRequestsLastHour > 0 ? `, 429s: ${figure(tooManyRequestsLastHour)}` : '';
  return [`${source}: ${counted(requestsLastHour, 'request')} in the last hour${share}${refused}`];
}

function notesOn(status: StreamStatus): string[] {
  const { source, stream, sink, quarantined, uncertifiedWindows, parkedWindows, coverage, parked, lastRun } = status;
  const lines: string[] = [];
  const open = coverage.filter(({ state }) => state === 'gap');
  if (open.length > 0) {
    const first = `${minute(open[0]?.start)} to ${minute(open[0]?.end)}`;
    lines.push(`${counted(open.length, 'gap')} in ${sink}, the first from ${first}: the next sync reads it`);
  }
  if (uncertifiedWindows > 0) {
    lines.push(
      `windows not proven complete in ${sink}: ${figure(uncertifiedWindows)}; tributary.windows says which and why`,
    );
  }
  if (parkedWindows > 0) lines.push(`of these, tried once a day after five tries: ${figure(parkedWindows)}`);
  if (status.byHandWindows > 0)
    lines.push(`windows called complete by hand in ${sink}, unread: ${figure(status.byHandWindows)}`);
  if (quarantined > 0) lines.push(`${figure(quarantined)} set aside: tributary quarantine list says why`);
  if (parked) {
    const again = parked.nextProbeAt ? `, tried again ${minute(parked.nextProbeAt)}` : '';
    lines.push(`parked since ${minute(parked.since)}${again}: ${parked.reason}`);
    lines.push(`next: ${parked.nextStep ?? 'tributary doctor says what to mend'}`);
  } else if (status.nextRunAt) lines.push(`next run ${minute(status.nextRunAt)}`);
  if (!parked && lastRun?.message && lastRun.message !== lastRun.state) lines.push(`last run: ${lastRun.message}`);
  return lines.map((line) => `${source}/${stream}: ${line}`);
}
