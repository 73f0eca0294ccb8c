import { setTimeout as sleep } from 'node:timers/promises';
import { environment, hasState, stateNameOf, withApp } from '../app.ts';
import { ConfigError } from '../model/errors.ts';
import { readStatus, type StreamStatus } from '../sync/status.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { withConfig, withJson, withSource } from './options.ts';
import { figure, table } from './terminal/table.ts';

const EXAMPLES = `
Examples:
  tributary status
  tributary status --watch
  tributary status --json | jq '.streams[] | {stream, completeThrough}'

"complete through" is proven: every event before that moment is in the tables.
"newest" is how far rows have come, proven or not. Times are UTC.`;

const WATCH_EVERY_MS = 2000;

type StatusOptions = CommonOptions & { watch?: boolean };

export const registerStatus: Register = (program, action) => {
  const command = program
    .command('status')
    .description('how far each stream has come')
    .option('--watch', 'show it again every two seconds, until Ctrl-C')
    .addHelpText('after', EXAMPLES);
  withJson(withSource(withConfig(command))).action(action(status));
};

async function status({ terminal, log, signal }: Context, options: StatusOptions): Promise<ExitCode> {
  const { config } = environment.configOrDefaults(options.config);
  const stateName = stateNameOf(config);
  const known = new Set(Object.keys(config.sources));
  const show = (all: readonly StreamStatus[]): void => {
    for (const { source } of all) known.add(source);
    checkSource(options.source, known);
    const streams = all.filter(({ source }) => options.source === undefined || source === options.source);
    if (options.watch && terminal.isScreen) terminal.out('\x1b[2J\x1b[H');
    if (options.json) terminal.out(JSON.stringify({ streams }, null, options.watch ? 0 : 2));
    else terminal.out(describe(streams, stateName));
  };
  if (!hasState(config) && !options.watch) {
    show([]);
    return EXIT.done;
  }
  return withApp({ config, log }, async ({ state }) => {
    do show(await readStatus(state));
    while (options.watch && terminal.hasReader() && (await pause(signal)));
    return EXIT.done;
  });
}

/** Ctrl-C ends the watching, which is what was asked. */
const pause = (signal: AbortSignal): Promise<boolean> => sleep(WATCH_EVERY_MS, true, { signal }).catch(() => false);

/** "Nothing has been synced" would be a false comfort for a source that is only mistyped. */
function checkSource(name: string | undefined, known: ReadonlySet<string>): void {
  if (name === undefined || known.has(name)) return;
  throw new ConfigError(`there is no source "${name}", neither in the config nor in the state`, {
    next: known.size > 0 ? `use one of: ${[...known].join(', ')}` : 'leave --source out',
  });
}

function describe(streams: readonly StreamStatus[], stateName: string): string {
  if (streams.length === 0)
    return `nothing has been synced yet (state: ${stateName})\nnext: tributary sync, or tributary demo`;
  const rows = streams.map((s) => [
    `${s.source}/${s.stream}`,
    minute(s.completeThrough) ?? 'not proven yet',
    minute(s.newestSeen) ?? '',
    s.lagSeconds === null ? '' : ago(s.lagSeconds),
    s.lastRun ? `${s.lastRun.state} ${minute(s.lastRun.startedAt)?.slice(5)}` : '',
    s.sink ?? '',
  ]);
  const headers = ['stream', 'complete through', 'newest', 'lag', 'last run', 'sink'];
  // The sink is worth its column only where there are several.
  const isMany = new Set(streams.map(({ sink }) => sink)).size > 1;
  const width = isMany ? headers.length : headers.length - 1;
  const lines = [
    table(
      headers.slice(0, width),
      rows.map((row) => row.slice(0, width)),
    ),
    ...streams.flatMap(notesOn),
    '',
    `state: ${stateName} · times in UTC`,
  ];
  return lines.join('\n');
}

function notesOn({ source, stream, quarantined, uncertifiedWindows, ...rest }: StreamStatus): string[] {
  const { parkedWindows, parked, lastRun } = rest;
  const lines: string[] = [];
  if (parked) {
    lines.push(`parked since ${minute(parked.since)}, tried again ${minute(parked.nextProbeAt)}: ${parked.reason}`);
    if (parked.nextStep) lines.push(`next: ${parked.nextStep}`);
  }
  if (quarantined > 0) lines.push(`${figure(quarantined)} set aside, with the reason in tributary.quarantine`);
  if (uncertifiedWindows > 0) {
    lines.push(`windows not proven complete: ${figure(uncertifiedWindows)}; tributary.windows says which and why`);
  }
  if (parkedWindows > 0) lines.push(`of these, given up after five tries: ${figure(parkedWindows)}`);
  if (!parked && lastRun?.message && lastRun.message !== lastRun.state) lines.push(`last run: ${lastRun.message}`);
  return lines.map((line) => `${source}/${stream}: ${line}`);
}

const minute = (iso: string | null): string | undefined => iso?.slice(0, 16).replace('T', ' ');

function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
