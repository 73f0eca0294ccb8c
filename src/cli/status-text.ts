import type { SourceUse, StreamStatus } from '../sync/status.ts';
import { COVERAGE_LEGEND, coverageBar } from './terminal/coverage-bar.ts';
import { figure, table } from './terminal/table.ts';
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
    tableOf(streams),
    ...bars(streams, columns),
    ...[...sources.flatMap(useOf), ...streams.flatMap(notesOn)].map((line) => wrap(line, 2, columns)),
    '',
    `state: ${stateName} · times in UTC`,
  ].join('\n');
}

function tableOf(streams: readonly StreamStatus[]): string {
  const rows = streams.map((s) => [
    `${s.source}/${s.stream}`,
    minute(s.completeThrough) || 'not proven yet',
    minute(s.newestSeen),
    s.lagSeconds === null ? '' : duration(s.lagSeconds),
    s.lastRun ? `${s.lastRun.state} ${minute(s.lastRun.startedAt).slice(5)}` : '',
    s.sink ?? '',
  ]);
  const headers = ['stream', 'complete through', 'newest', 'lag', 'last run', 'sink'];
  // The sink is worth its column only where there are several.
  const width = hasSeveralSinks(streams) ? headers.length : headers.length - 1;
  return table(
    headers.slice(0, width),
    rows.map((row) => row.slice(0, width)),
  );
}

const hasSeveralSinks = (streams: readonly StreamStatus[]): boolean =>
  new Set(streams.map(({ sink }) => sink)).size > 1;

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
  const { source, stream, sink, quarantined, uncertifiedWindows, coverage, parked, lastRun } = status;
  const lines: string[] = [];
  const open = coverage.filter(({ state }) => state === 'gap');
  if (open.length > 0) {
    const first = `${minute(open[0]?.start)} to ${minute(open[0]?.end)}`;
    lines.push(`${counted(open.length, 'gap')} in ${sink}, the first from ${first}: the next sync reads it`);
  }
  if (uncertifiedWindows > 0) {
    lines.push(`windows not proven complete: ${figure(uncertifiedWindows)}; tributary.windows says which and why`);
  }
  if (quarantined > 0) lines.push(`${figure(quarantined)} set aside: tributary quarantine list says why`);
  if (parked) lines.push(`parked: ${parked.reason}; ${parked.next ?? 'tributary doctor says what to mend'}`);
  else if (status.nextRunAt) lines.push(`next run ${minute(status.nextRunAt)}`);
  if (!parked && lastRun?.message && lastRun.message !== lastRun.state) lines.push(`last run: ${lastRun.message}`);
  return lines.map((line) => `${source}/${stream}: ${line}`);
}
