import type { SyncApp } from '../app/index.ts';
import { Cancelled } from '../model/errors.ts';
import type { Outcome } from '../sync/sync-all.ts';
import { EXIT, type ExitCode, exitCodeOf, gravest } from './exit-codes.ts';
import { notes, summaryJson, summaryTable } from './summary.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Prints what came of a sync or a backfill, and says it again by the exit code. */
export function report(
  outcomes: readonly Outcome[],
  app: SyncApp,
  { terminal, json }: { terminal: Terminal; json: boolean },
): ExitCode {
  if (json) terminal.out(JSON.stringify(summaryJson(outcomes, app), null, 2));
  // Where nothing at all was read, the message says everything.
  else if (outcomes.some(({ report: done, fault }) => !fault || done?.tally.read)) {
    terminal.out([summaryTable(outcomes), '', ...notes(outcomes, app)].join('\n'));
  }
  for (const message of messages(outcomes)) terminal.err(`${message}\n`);
  return gravest(outcomes.map(codeOf));
}

function codeOf({ fault, report }: Outcome): ExitCode {
  if (fault) return exitCodeOf(fault);
  return report?.state === 'done' ? EXIT.done : EXIT.incomplete;
}

/** Three streams that were refused for one reason are one message; how long each tried is no difference. */
function messages(outcomes: readonly Outcome[]): string[] {
  const byReason = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    if (!outcome.fault) continue;
    if (outcome.fault instanceof Cancelled) outcome.fault.next ??= 'run it again: it goes on from there';
    const reason = outcome.fault.message.replace(/\d+(\.\d+)? (tries|s)\b/g, '');
    byReason.set(reason, [...(byReason.get(reason) ?? []), outcome]);
  }
  return [...byReason.values()].map(([first, ...others]) => {
    const also = others.map(({ source, stream }) => `${source}/${stream}`).join(', ');
    return `${first?.fault?.describe()}${also ? `\nalso: ${also}` : ''}`;
  });
}
