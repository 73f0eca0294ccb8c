import { type App, environment, openApp } from '../app.ts';
import { DEFAULT_CONFIG } from '../config.ts';
import { holderOf } from '../cursor/leases.ts';
import type { StreamName } from '../model/streams.ts';
import { type Outcome, syncAll } from '../sync/sync-all.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode, exitCodeOf, gravest } from './exit-codes.ts';
import { parseStreams, withConfig, withJson, withSink, withSource } from './options.ts';
import { budgetLines, summaryJson, summaryTable } from './summary.ts';
import { createProgressLine } from './terminal/progress.ts';

const EXAMPLES = `
Examples:
  tributary sync                          every stream of every source
  tributary sync leads sales --source eu  two streams of one source

Run it again whenever you like: it goes on from what is proven complete.`;

export const registerSync: Register = (program, action) => {
  const command = program
    .command('sync')
    .description('bring the tables up to date')
    .argument('[stream...]', 'clicks, leads, sales (default: all that the config has)')
    .addHelpText('after', EXAMPLES);
  withJson(withSink(withSource(withConfig(command)))).action(
    action(async (context, names: string[], options: CommonOptions) => {
      const streams = parseStreams(names);
      const { config, warnings } = environment.config(options.config ?? DEFAULT_CONFIG);
      for (const warning of warnings) context.terminal.err(`note: ${warning}\n`);
      const app = await openApp({ config, log: context.log, sink: options.sink });
      try {
        return await syncAndReport(context, app, { ...options, streams });
      } finally {
        await app.close();
      }
    }),
  );
};

/** Syncs and prints what came of it; `demo` does the same. */
export async function syncAndReport(
  { terminal, log, signal }: Context,
  app: App,
  options: CommonOptions & { streams: readonly StreamName[] },
): Promise<ExitCode> {
  const progress = createProgressLine(terminal);
  const outcomes = await syncAll(
    { state: app.state, sinks: app.sinks, log, signal, holder: holderOf('sync'), onProgress: progress.update },
    app.jobs(options),
  );
  progress.clear();

  if (options.json) terminal.out(JSON.stringify(summaryJson(outcomes, app), null, 2));
  // Where nothing at all was read, the message says everything.
  else if (outcomes.some(({ report, fault }) => !fault || report?.tally.read)) {
    terminal.out([summaryTable(outcomes), '', ...budgetLines(outcomes, app), ''].join('\n'));
  }
  for (const message of messages(outcomes)) terminal.err(`${message}\n`);
  return gravest(outcomes.map(codeOf));
}

function codeOf({ fault, report }: Outcome): ExitCode {
  if (fault) return exitCodeOf(fault);
  return report?.state === 'done' ? EXIT.done : EXIT.incomplete;
}

/** Three streams that were refused for one reason are one message. */
function messages(outcomes: readonly Outcome[]): string[] {
  const byText = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    if (!outcome.fault) continue;
    const text = outcome.fault.message;
    byText.set(text, [...(byText.get(text) ?? []), outcome]);
  }
  return [...byText.values()].map(([first, ...others]) => {
    const also = others.map(({ source, stream }) => `${source}/${stream}`).join(', ');
    return `${first?.fault?.describe()}${also ? `\nalso: ${also}` : ''}`;
  });
}
