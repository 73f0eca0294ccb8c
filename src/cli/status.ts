import { setTimeout as sleep } from 'node:timers/promises';
import { environment, hasState, stateNameOf, withApp } from '../app/index.ts';
import { readStatus, readUse, type SourceUse, type StreamStatus } from '../sync/status.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { checkSource, withConfig, withJson, withSource } from './options.ts';
import { describeStatus } from './status-text.ts';

const EXAMPLES = `
Examples:
  tributary status
  tributary status --watch
  tributary status --json | jq '.streams[] | {stream, completeThrough}'

"complete through" is proven: every event before that moment is in the tables.
"newest" is how far rows have come, proven or not. The bar shows all time since
the beginning. Times are UTC. docs/operations.md has every field of --json.`;

const WATCH_EVERY_MS = 2000;

type StatusOptions = CommonOptions & { watch?: boolean };

export const registerStatus: Register = (program, action) => {
  const command = program
    .command('status')
    .description('how far each stream has come, and what is missing')
    .option('--watch', 'show it again every two seconds, until Ctrl-C')
    .addHelpText('after', EXAMPLES);
  withJson(withSource(withConfig(command))).action(action(status));
};

interface Snapshot {
  streams: readonly StreamStatus[];
  sources: readonly SourceUse[];
}

async function status({ terminal, log, signal }: Context, options: StatusOptions): Promise<ExitCode> {
  const { config } = environment.configOrDefaults(options.config);
  const stateName = stateNameOf(config);
  const configured = Object.keys(config.sources);
  const perSecond = new Map(Object.entries(config.sources).map(([name, source]) => [name, source.requestsPerSecond]));
  const show = (all: Snapshot): void => {
    checkSource(options.source, [...configured, ...all.streams.map(({ source }) => source)]);
    const isAsked = ({ source }: { source: string }): boolean =>
      options.source === undefined || source === options.source;
    const snapshot = { streams: all.streams.filter(isAsked), sources: all.sources.filter(isAsked) };
    if (options.watch && terminal.isScreen) terminal.out('\x1b[2J\x1b[H');
    if (options.json) terminal.out(JSON.stringify(snapshot, null, options.watch ? 0 : 2));
    else terminal.out(describeStatus(snapshot, { stateName, columns: terminal.columns }));
  };
  if (!hasState(config) && !options.watch) {
    show({ streams: [], sources: [] });
    return EXIT.done;
  }
  return withApp({ config, log }, async ({ state }) => {
    do show({ streams: await readStatus(state), sources: await readUse(state, perSecond) });
    while (options.watch && terminal.hasReader() && (await pause(signal)));
    return EXIT.done;
  });
}

/** Ctrl-C ends the watching, which is what was asked. */
const pause = (signal: AbortSignal): Promise<boolean> => sleep(WATCH_EVERY_MS, true, { signal }).catch(() => false);
