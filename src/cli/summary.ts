import type { SyncApp } from '../app/index.ts';
import { toIso } from '../model/instant.ts';
import type { Outcome } from '../sync/sync-all.ts';
import { figure, table } from './terminal/table.ts';

type Tally = NonNullable<Outcome['report']>['tally'];

interface FigureColumn {
  header: string;
  of: (tally: Tally) => number;
  /** Shown only where it is not zero: a column that appears says that something deserves a look. */
  isRare?: true;
}

const FIGURES: readonly FigureColumn[] = [
  { header: 'read', of: (tally) => tally.read },
  { header: 'new', of: (tally) => tally.new },
  { header: 'changed', of: (tally) => tally.changed },
  { header: 'same', of: (tally) => tally.unchanged },
  { header: 'aside', of: (tally) => tally.quarantined, isRare: true },
  { header: 'requests', of: (tally) => tally.requests },
  { header: '429s', of: (tally) => tally.tooManyRequests, isRare: true },
];

/** The end of a sync: what was read, what changed, how far it is complete. Times are UTC. */
export function summaryTable(outcomes: readonly Outcome[]): string {
  const isNeeded = ({ of, isRare }: FigureColumn): boolean =>
    !isRare || outcomes.some(({ report }) => report && of(report.tally) > 0);
  const columns = FIGURES.filter(isNeeded);
  return table(
    ['stream', ...columns.map(({ header }) => header), 'complete through'],
    outcomes.map(({ source, stream, report }) => [
      `${source}/${stream}`,
      ...columns.map(({ of }) => (report ? figure(of(report.tally)) : '')),
      report ? throughOf(report.cursor?.completeThrough) : 'not begun',
    ]),
  );
}

/** Notes under the table: budget, and whatever of the data deserves a look. Nothing to say is not said. */
export function notes(outcomes: readonly Outcome[], app: SyncApp): string[] {
  const budgets = sourcesOf(outcomes).map((source) => {
    const { requests, share, perSecond, pauses } = app.usage(source);
    const used = share === undefined ? '' : `, ${Math.round(share * 100)} % of ${perSecond}/s while there was work`;
    const slowed = pauses > 0 ? `, 429s: ${pauses}` : '';
    return `budget   ${source}: ${figure(requests)} requests${used}${slowed}`;
  });
  const places = app.sinks.map((sink) => `data in  ${sink.place}`);
  return [...budgets, ...outcomes.flatMap(notesOn), ...places, `state in ${app.stateName} · times in UTC`];
}

function notesOn({ source, stream, report }: Outcome): string[] {
  if (!report) return [];
  const { tally, state, fault } = report;
  const lines: string[] = [];
  const contradictions = counts(tally.contradictions);
  if (contradictions) lines.push(`old names that contradict their field: ${contradictions} (the field won)`);
  const misfits = counts(tally.misfits);
  if (misfits) lines.push(`values that do not fit their column: ${misfits} (kept in _extra)`);
  if (tally.quarantined > 0) lines.push(`${figure(tally.quarantined)} set aside: see tributary.quarantine`);
  if (state === 'incomplete' && !fault) lines.push('not all windows are proven complete: see tributary.windows');
  return lines.map((line) => `note     ${source}/${stream}: ${line}`);
}

/** The same for machines. */
export function summaryJson(outcomes: readonly Outcome[], app: SyncApp): object {
  return {
    streams: outcomes.map(({ source, stream, report, fault }) => ({
      source,
      stream,
      run: report?.runId ?? null,
      state: report?.state ?? 'not begun',
      ...report?.tally,
      completeThrough: isoOrNull(report?.cursor?.completeThrough),
      newestSeen: isoOrNull(report?.cursor?.newestSeen),
      error: fault ? { message: fault.message, kept: fault.kept ?? null, next: fault.next ?? null } : null,
    })),
    budget: Object.fromEntries(sourcesOf(outcomes).map((source) => [source, app.usage(source)])),
  };
}

const sourcesOf = (outcomes: readonly Outcome[]): string[] => [...new Set(outcomes.map(({ source }) => source))];

const counts = (by: Record<string, number>): string =>
  Object.entries(by)
    .map(([column, n]) => `${column} ${figure(n)}`)
    .join(', ');

const throughOf = (instant: number | undefined): string =>
  instant === undefined ? 'not proven yet' : toIso(instant).slice(0, 16).replace('T', ' ');

const isoOrNull = (instant: number | undefined): string | null => (instant === undefined ? null : toIso(instant));
