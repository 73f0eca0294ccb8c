import type { App } from '../app.ts';
import { toIso } from '../model/instant.ts';
import type { Outcome } from '../sync/sync-all.ts';
import { figure, table } from './terminal/table.ts';

/** The end of a sync: what was read, what changed, how far it is complete. */
export function summaryTable(outcomes: readonly Outcome[]): string {
  const headers = [
    'stream',
    'read',
    'new',
    'changed',
    'same',
    'set aside',
    'requests',
    '429s',
    'complete through (UTC)',
  ];
  return table(
    headers,
    outcomes.map(({ source, stream, report }) => {
      if (!report) return [`${source}/${stream}`, ...Array(7).fill(''), 'not begun'];
      const { read, new: fresh, changed, unchanged, quarantined, requests, tooManyRequests } = report.tally;
      const figures = [read, fresh, changed, unchanged, quarantined, requests, tooManyRequests].map(figure);
      return [`${source}/${stream}`, ...figures, throughOf(report.cursor?.completeThrough)];
    }),
  );
}

/** Notes under the table: budget, and whatever of the data deserves a look. Nothing to say is not said. */
export function budgetLines(outcomes: readonly Outcome[], app: App): string[] {
  const lines: string[] = [];
  for (const source of new Set(outcomes.map((outcome) => outcome.source))) {
    const { requests, share, perSecond, pauses } = app.usage(source);
    const used = share === undefined ? '' : `, ${Math.round(share * 100)} % of ${perSecond}/s while there was work`;
    lines.push(
      `budget   ${source}: ${figure(requests)} requests${used}${pauses > 0 ? `, slowed down by 429s: ${pauses}` : ''}`,
    );
  }
  for (const { source, stream, report } of outcomes) {
    const name = `${source}/${stream}`;
    const contradictions = counts(report?.tally.contradictions ?? {});
    if (contradictions)
      lines.push(
        `note     ${name}: aliases that contradict their field: ${contradictions} (the field won; the alias is in _extra)`,
      );
    const misfits = counts(report?.tally.misfits ?? {});
    if (misfits) lines.push(`note     ${name}: values that do not fit their column: ${misfits} (kept in _extra)`);
    if (report && report.tally.quarantined > 0) {
      lines.push(`note     ${name}: ${report.tally.quarantined} set aside, with the reason in tributary.quarantine`);
    }
    if (report?.state === 'incomplete' && !report.fault) {
      lines.push(`note     ${name}: some windows could not be proven complete; tributary.windows says which and why`);
    }
  }
  lines.push(`data in  ${app.sinks.map((sink) => sink.place).join(', ')}`);
  return lines;
}

/** The same for machines. */
export function summaryJson(outcomes: readonly Outcome[], app: App): object {
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
    budget: Object.fromEntries(
      [...new Set(outcomes.map((outcome) => outcome.source))].map((source) => [source, app.usage(source)]),
    ),
  };
}

const counts = (by: Record<string, number>): string =>
  Object.entries(by)
    .map(([column, n]) => `${column} ${figure(n)}`)
    .join(', ');

const throughOf = (instant: number | undefined): string =>
  instant === undefined ? 'not proven yet' : toIso(instant).slice(0, 19).replace('T', ' ');

const isoOrNull = (instant: number | undefined): string | null => (instant === undefined ? null : toIso(instant));
