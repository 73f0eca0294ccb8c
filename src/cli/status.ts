import { setTimeout as sleep } from 'node:timers/promises';
import { environment, openApp } from '../app.ts';
import { readStatus, type StreamStatus } from '../sync/status.ts';
import type { CommonOptions, Register } from './command.ts';
import { EXIT } from './exit-codes.ts';
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

export const registerStatus: Register = (program, action) => {
  const command = program
    .command('status')
    .description('how far each stream has come')
    .option('--watch', 'show it again every two seconds, until Ctrl-C')
    .addHelpText('after', EXAMPLES);
  withJson(withSource(withConfig(command))).action(
    action(async ({ terminal, log, signal }, options: CommonOptions & { watch?: boolean }) => {
      const { config } = environment.configOrDefaults(options.config);
      const app = await openApp({ config: { ...config, sources: {}, sinks: {} }, log, attach: true });
      try {
        do {
          const all = await readStatus(app.state);
          const streams = all.filter(({ source }) => options.source === undefined || source === options.source);
          if (options.watch && terminal.hasColour) terminal.out('\x1b[2J\x1b[H');
          terminal.out(options.json ? JSON.stringify({ streams }, null, 2) : describe(streams, app.stateName));
        } while (options.watch && (await pause(signal)));
        return EXIT.done;
      } finally {
        await app.close();
      }
    }),
  );
};

const pause = (signal: AbortSignal): Promise<boolean> => sleep(WATCH_EVERY_MS, true, { signal }).catch(() => false); // Ctrl-C ends the watching, which is what was asked.

function describe(streams: readonly StreamStatus[], stateName: string): string {
  if (streams.length === 0)
    return `nothing has been synced yet (state: ${stateName})\nnext: tributary sync, or tributary demo`;
  const rows = streams.map((s) => [
    `${s.source}/${s.stream}`,
    s.sink ?? '',
    minute(s.completeThrough) ?? 'not proven yet',
    minute(s.newestSeen) ?? '',
    s.lagSeconds === null ? '' : ago(s.lagSeconds),
    s.lastRun ? `${s.lastRun.state} ${minute(s.lastRun.startedAt)}` : '',
  ]);
  const lines = [table(['stream', 'sink', 'complete through', 'newest', 'lag', 'last run'], rows)];
  for (const s of streams) {
    const name = `${s.source}/${s.stream}`;
    if (s.quarantined > 0) lines.push(`${name}: ${figure(s.quarantined)} set aside in tributary.quarantine`);
    if (s.uncertifiedWindows > 0)
      lines.push(`${name}: ${figure(s.uncertifiedWindows)} windows not proven: see tributary.windows`);
    if (s.lastRun?.message) lines.push(`${name}: ${s.lastRun.message}`);
  }
  lines.push('', `state: ${stateName} · times in UTC`);
  return lines.join('\n');
}

const minute = (iso: string | null): string | undefined => iso?.slice(0, 16).replace('T', ' ');

function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
