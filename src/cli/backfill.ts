import { environment, type SyncApp, withSyncApp } from '../app.ts';
import { DEFAULT_CONFIG } from '../config.ts';
import { holderOf } from '../cursor/leases.ts';
import type { BackfillRequest } from '../sync/backfill-stream.ts';
import { priceBackfill } from '../sync/price.ts';
import { reportPrices } from '../sync/price-report.ts';
import { backfillAll } from '../sync/sync-all.ts';
import { describePrices } from './backfill-price.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import {
  parseStreams,
  parseWindow,
  type WindowOptions,
  withConfig,
  withJson,
  withSink,
  withSource,
  withWindow,
} from './options.ts';
import { report } from './report.ts';
import { createBackfillLine } from './terminal/backfill-line.ts';

const EXAMPLES = `
Examples:
  tributary backfill --from 2026-07-01 --to 2026-10-01 --plan   its price
  tributary backfill --from 2026-07-01 --to 2026-10-01          do it now
  tributary backfill clicks --from 90d --to now --force         read again

It reads only what is not proven complete yet, and lets syncs go first. Ctrl-C
loses nothing: run it again and it goes on.`;

type BackfillOptions = CommonOptions & WindowOptions & { plan?: boolean; force?: boolean };

export const registerBackfill: Register = (program, action) => {
  const command = program
    .command('backfill')
    .description('read a range of dates into the sinks')
    .argument('[stream...]', 'clicks, leads, sales (default: all that the config has)')
    .option('--plan', 'only say what it would cost: rows, requests, time on each plan')
    .option('--force', 'read again what is proven complete already')
    .addHelpText('after', EXAMPLES);
  withJson(withSink(withSource(withConfig(withWindow(command))))).action(
    action(async (context, names: string[], options: BackfillOptions) => {
      const choice = { source: options.source, sink: options.sink, streams: parseStreams(names) };
      const request = { window: parseWindow(options), force: options.force === true };
      const { config } = environment.config(options.config ?? DEFAULT_CONFIG);
      return withSyncApp({ config, log: context.log, choice, beside: true }, (app) =>
        options.plan ? price(context, app, request, options) : backfill(context, app, request, options),
      );
    }),
  );
};

async function price(
  { terminal, signal }: Context,
  app: SyncApp,
  request: BackfillRequest,
  { json }: { json?: boolean },
): Promise<ExitCode> {
  const { state, sinks, jobs } = app;
  const prices = await Promise.all(jobs.map((job) => priceBackfill({ state, sinks, signal }, job, request)));
  terminal.out(json ? JSON.stringify(reportPrices(prices, jobs), null, 2) : describePrices(prices, jobs));
  return EXIT.done;
}

async function backfill(
  { terminal, log, signal }: Context,
  app: SyncApp,
  request: BackfillRequest,
  { json = false }: { json?: boolean },
): Promise<ExitCode> {
  const { state, sinks, jobs } = app;
  const line = createBackfillLine(terminal, jobs.length, () => app.usage(jobs[0]?.source ?? '').share);
  const deps = { state, sinks, log, signal, holder: holderOf('backfill'), onProgress: line.update };
  const outcomes = await backfillAll(deps, jobs, request);
  line.clear();
  return report(outcomes, app, { terminal, json });
}
