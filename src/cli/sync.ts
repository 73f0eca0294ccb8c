import { environment, type SyncApp, withSyncApp } from '../app.ts';
import { DEFAULT_CONFIG } from '../config.ts';
import { holderOf } from '../cursor/leases.ts';
import { Cancelled } from '../model/errors.ts';
import { type Outcome, syncAll } from '../sync/sync-all.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode, exitCodeOf, gravest } from './exit-codes.ts';
import { parseStreams, withConfig, withJson, withSink, withSource } from './options.ts';
import { notes, summaryJson, summaryTable } from './summary.ts';
import { createProgressLine } from './terminal/progress.ts';

const EXAMPLES = `
Examples:
  tributary sync                          every stream of every source
  tributary sync leads sales --source eu  two streams of one source
  tributary sync --json > summary.json    for a script

Run it again whenever you like: it goes on from what is proven complete.`;

export const registerSync: Register = (program, action) => {
  const command = program
    .command('sync')
    .description('bring the tables up to date')
    .argument('[stream...]', 'clicks, leads, sales (default: all that the config has)')
    .addHelpText('after', EXAMPLES);
  withJson(withSink(withSource(withConfig(command)))).action(
    action(async (context, names: string[], options: CommonOptions) => {
      const choice = { source: options.source, sink: options.sink, streams: parseStreams(names) };
      const { config, warnings } = environment.config(options.config ?? DEFAULT_CONFIG);
      for (const warning of warnings) context.terminal.err(`note: ${warning}\n`);
      return withSyncApp({ config, log: context.log, choice }, (app) => syncAndReport(context, app, options));
    }),
  );
};

/** Syncs and prints what came of it; `demo` does the same. */
export async function syncAndReport(
  { terminal, log, signal }: Context,
  app: SyncApp,
  { json = false }: { json?: boolean },
): Promise<ExitCode> {
  const progress = createProgressLine(terminal);
  const { state, sinks, jobs } = app;
  const outcomes = await syncAll(
    { state, sinks, log, signal, holder: holderOf('sync'), onProgress: progress.update },
    jobs,
  );
  progress.clear();

  if (json) terminal.out(JSON.stringify(summaryJson(outcomes, app), null, 2));
  // Where nothing at all was read, the message says everything.
  else if (outcomes.some(({ report, fault }) => !fault || report?.tally.read)) {
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
