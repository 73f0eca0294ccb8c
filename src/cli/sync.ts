import { environment, type SyncApp, withSyncApp } from '../app/index.ts';
import { DEFAULT_CONFIG } from '../config/index.ts';
import { holderOf } from '../cursor/leases.ts';
import { syncAll } from '../sync/sync-all.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import type { ExitCode } from './exit-codes.ts';
import { parseStreams, withConfig, withJson, withSink, withSource } from './options.ts';
import { report } from './report.ts';
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
  return report(outcomes, app, { terminal, json });
}
