import { Option } from 'commander';
import { byCommand } from '../../app/index.ts';
import type { Config } from '../../config/index.ts';
import { audited } from '../../cursor/audit.ts';
import { chooseFeeds, type KnownFeed, knownFeeds, reportFeed } from '../../cursor/cursors.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import { ConfigError } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { checkMove, type Move, moveCursor, resetCursor } from '../../sync/maintain/move-cursor.ts';
import {
  type Context,
  checkSource,
  command,
  type ExitCode,
  type Options,
  parseDateOption,
  parseStreams,
  show,
} from '../command.ts';
import { readState, withStored } from '../config.ts';
import { confirm, type FittedColumn, fittedTable, minute, table } from '../terminal.ts';

const GET = `Examples:
  tributary cursor get
  tributary cursor get sales --source main --json

Times are UTC.`;

const SET = `Examples:
  tributary cursor set sales --to 7d             read the last week again
  tributary cursor set clicks --to 2026-11-01 --sink lake

Moving back is safe: rows stay, and the next sync reads again from there. Moving
forward marks a range as complete that was never read; that needs --force, and
the ledger records it. It is refused while a sync is running. Times are UTC.`;

const RESET = `Examples:
  tributary cursor reset sales --source main
  tributary cursor reset clicks --sink lake      only one sink

Deletes the cursor of the stream; rows stay. The next sync begins at "since" of
the config and reads everything again. It prompts first; without a terminal it
needs --yes. It is refused while a sync is running.`;

type CursorOptions = Options & { to: string; force?: boolean };

const COMMON = ['config', 'source', 'sink', 'json'] as const;
const STREAMS = 'clicks, leads, sales';

export const registerCursor = command('cursor', {
  does: 'show a watermark, move it back, or start over',
  options: [],
  more: 'Example:\n  tributary cursor get\n  tributary cursor set sales --to 7d',
  commands: {
    get: {
      does: 'how far each stream is certified, in each sink',
      takes: ['[stream...]', `${STREAMS} (default: all)`],
      options: COMMON,
      more: GET,
      run: (context, names: string[], options: CursorOptions) => get(context, parseStreams(names), options),
    },
    set: {
      does: 'move a watermark, so that the next sync reads again from there',
      takes: ['<stream...>', STREAMS],
      options: [
        new Option('--to <DATE>', 'a date, or how long ago: 2026-11-01, 7d').makeOptionMandatory(),
        ['--force', 'also forward, over a range that was never read'],
        ...COMMON,
      ],
      more: SET,
      async run(context, names: string[], options: CursorOptions) {
        const [streams, to] = [parseStreams(names), parseDateOption('--to', options.to)];
        if (to > Date.now())
          throw new ConfigError('--to is in the future', {
            next: 'give a time in the past: nothing later can be complete',
          });
        const force = options.force === true;
        if (force) context.terminal.err('warning: --force gives up the proof: events may be missing permanently\n');
        return change(context, streams, options, { to, force });
      },
    },
    reset: {
      does: 'reset a stream to its start; its rows stay',
      takes: ['<stream...>', STREAMS],
      options: ['dryRun', 'yes', ...COMMON],
      more: RESET,
      run: async (context, names: string[], options: CursorOptions) => change(context, parseStreams(names), options),
    },
  },
});

async function get(context: Context, streams: readonly StreamName[], options: Options): Promise<ExitCode> {
  const nothing = ({ sources }: Config): KnownFeed[] => {
    checkSource(options.source, Object.keys(sources));
    return [];
  };
  const feeds = chooseFeeds(await readState(context, options, nothing, knownFeeds), { ...options, streams });
  const table = (): string => `${fittedTable(COLUMNS, feeds, context.terminal.columns)}\n\ntimes in UTC`;
  return show(context, options, { cursors: feeds.map(reportFeed) }, () =>
    feeds.length === 0 ? 'nothing has been synced yet' : table(),
  );
}

async function change(
  context: Context,
  streams: readonly StreamName[],
  options: CursorOptions,
  /** Undefined: reset. */
  move?: Move,
): Promise<ExitCode> {
  const { terminal } = context;
  return withStored(context, options, async ({ state, sinks }) => {
    const feeds = chooseFeeds(await knownFeeds(state), { ...options, streams });
    if (feeds.length === 0) {
      throw new ConfigError(`there is no cursor of ${streams.join(', ')} that matches`, {
        next: 'see tributary cursor get',
      });
    }
    const sources = new Set(feeds.map(({ source }) => source));
    // Several sinks of one source make sense; several sources are probably a mistake.
    if (sources.size > 1) {
      throw new ConfigError('several sources have this stream', { next: `add --source: ${[...sources].join(', ')}` });
    }
    if (options.dryRun) {
      const table = fittedTable(COLUMNS, feeds, terminal.columns);
      const body = { cursors: feeds.map(reportFeed), dryRun: true };
      return show(context, options, body, () => `${table}\n\nwould be reset; nothing was changed`);
    }
    if (!move) {
      const names = feeds.map(({ source, stream, sink }) => `${source}/${stream} in ${sink}`).join(', ');
      await confirm(context, `Reset ${names} and read everything again?`, options);
    }
    if (move) for (const feed of feeds) await checkMove(state, feed, move);
    for (const feed of feeds) {
      const { sink } = feed;
      const detail = { sink, ...(move && { to: options.to, force: move.force }) };
      const entry = { ...byCommand([feed]), action: `cursor.${move ? 'move' : 'reset'}`, detail };
      const deps = { state, sinks, holder: holderOf('cursor') };
      await audited(state, entry, () => (move ? moveCursor(deps, feed, move) : resetCursor(deps, feed)));
    }
    const after = chooseFeeds(await knownFeeds(state), { ...options, streams });
    return show(context, options, { cursors: after.map(reportFeed) }, () =>
      describeChange(feeds, after, terminal.columns),
    );
  });
}

const throughOf = (feed: KnownFeed): string => minute(isoOrNull(feed.completeThrough)) || 'not certified yet';

const COLUMNS: ReadonlyArray<FittedColumn<KnownFeed>> = [
  { header: 'stream', of: (feed) => `${feed.source}/${feed.stream}` },
  { header: 'sink', of: (feed) => feed.sink },
  { header: 'since', of: (feed) => minute(toIso(feed.since)).slice(0, 10), spare: 2 },
  { header: 'complete through', of: throughOf },
  { header: 'newest', of: (feed) => minute(isoOrNull(feed.newestSeen)), spare: 1 },
];

function describeChange(before: readonly KnownFeed[], after: readonly KnownFeed[], columns: number): string {
  const rows = before.map((feed) => {
    const { source, stream, sink } = feed;
    const [now] = chooseFeeds(after, { source, streams: [stream], sink });
    return [`${source}/${stream}`, sink, throughOf(feed), now ? throughOf(now) : 'reset'];
  });
  const streams = [...new Set(before.map(({ stream }) => stream))].join(' ');
  const changes = table(['stream', 'sink', 'before', 'after'], rows, columns);
  return `${changes}\n\ntimes in UTC · next: tributary sync ${streams}`;
}
