import { environment, type SyncApp, withSyncApp } from '../app/index.ts';
import { unknownName } from '../app/jobs.ts';
import { DEFAULT_CONFIG } from '../config/index.ts';
import { holderOf } from '../cursor/leases.ts';
import { ConfigError } from '../model/errors.ts';
import type { Window } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import type { SyncDeps } from '../sync/job.ts';
import { isSound, type Repair, repairStream } from '../sync/repair-stream.ts';
import { reportRepair } from '../sync/verdict-report.ts';
import { verifyBetween, verifyStream } from '../sync/verify-stream.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode, exitCodeOf, gravest } from './exit-codes.ts';
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
import { createBackfillLine } from './terminal/backfill-line.ts';
import { describeRepair } from './verify-report.ts';

const EXAMPLES = `
Examples:
  tributary verify --from 7d --to now                 sinks against the service
  tributary verify sales --from 2026-10-01 --to 2026-11-01 --repair
  tributary verify --from 30d --to now --between warehouse lake

It reads the range from the service again and says, day by day, what a sink
lacks, has too much of, or has with another content. Counters and names of links
and customers move on their own and do not count. Exit code 0: all is as it
should be; 4: it is not.`;

type VerifyOptions = CommonOptions & WindowOptions & { repair?: boolean; between?: string[] };

export const registerVerify: Register = (program, action) => {
  const command = program
    .command('verify')
    .description('compare what the sinks hold with the service, or with each other')
    .argument('[stream...]', 'clicks, leads, sales (default: all that the config has)')
    .option('--repair', 'read again what differs, and compare again')
    .option('--between <SINK...>', 'compare two sinks with each other, without asking the service')
    .addHelpText('after', EXAMPLES);
  withJson(withSink(withSource(withConfig(withWindow(command))))).action(
    action(async (context, names: string[], options: VerifyOptions) => {
      const { between, repair } = options;
      if (between && (between.length !== 2 || between[0] === between[1])) {
        throw new ConfigError('--between takes two sinks', { next: 'write --between warehouse lake' });
      }
      if (between && repair) {
        throw new ConfigError('two sinks cannot repair each other', { next: 'use --repair without --between' });
      }
      const window = parseWindow(options);
      const choice = { source: options.source, sink: options.sink, streams: parseStreams(names) };
      const { config } = environment.config(options.config ?? DEFAULT_CONFIG);
      return withSyncApp({ config, log: context.log, choice, beside: true }, (app) =>
        verify(context, app, window, options),
      );
    }),
  );
};

async function verify(context: Context, app: SyncApp, window: Window, options: VerifyOptions): Promise<ExitCode> {
  const { terminal, log, signal } = context;
  const { state, sinks, jobs } = app;
  const line = createBackfillLine(terminal, jobs.length, () => undefined);
  const deps: SyncDeps = { state, sinks, log, signal, holder: holderOf('verify'), onProgress: line.update };
  const pair = options.between && pairOf(options.between, sinks);
  const results: Repair[] = [];
  // One stream after the other: what is printed stands in the order that was asked for.
  for (const job of jobs) {
    const before = pair ? await verifyBetween(deps, job, window, pair) : await verifyStream(deps, job, window);
    results.push(
      options.repair ? await repairStream(deps, job, before) : { before, after: undefined, fault: undefined },
    );
  }
  line.clear();
  if (options.json) terminal.out(JSON.stringify(results.map(reportRepair), null, 2));
  else terminal.out(results.map(describeRepair).join('\n\n'));
  return gravest(results.map(codeOf));
}

function codeOf(repair: Repair): ExitCode {
  if (repair.fault) return exitCodeOf(repair.fault);
  return isSound(repair) ? EXIT.done : EXIT.incomplete;
}

function pairOf(names: readonly string[], sinks: readonly Sink[]): [Sink, Sink] {
  const [first, second] = names.map((name) => {
    const sink = sinks.find((each) => each.name === name);
    if (sink) return sink;
    throw unknownName(
      'sink',
      name,
      sinks.map((each) => each.name),
    );
  });
  if (!first || !second) throw new Error('two names, two sinks');
  return [first, second];
}
