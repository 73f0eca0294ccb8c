import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { environment, hasState, stateNameOf, withApp } from '../../app/index.ts';
import type { Config } from '../../config/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { describeRange } from '../../model/window.ts';
import { findUnmet, type Need, needsOf, type Unmet, unfilledOf } from '../../sync/needs.ts';
import { readStatus, readUse, type SourceUse, type StreamStatus } from '../../sync/status.ts';
import { type Context, checkSource, command, EXIT, type ExitCode, firstStep, type Options } from '../command.ts';
import { bars } from '../coverage-bar.ts';
import {
  counted,
  duration,
  type FittedColumn,
  figure,
  fittedTable,
  minute,
  shortened,
  type Terminal,
  wrap,
} from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary status
  tributary status --watch
  tributary status --check || notify     exit code 4 if action is needed
  tributary status --json | jq '.streams[] | {stream, completeThrough}'

"complete through" is a promise: every event from "since" up to that time that
matches the filters is in the sink, except records that were set aside.
"also complete" lists other ranges that backfills have proven complete.
"newest" is the newest row, certified or not. The bar shows the time from
"since" to now. Times are UTC; the end of a range is exclusive.
docs/operations.md has every field of --json.`;

const WATCH_EVERY_MS = 2000;

type StatusOptions = Options & { watch?: boolean; check?: boolean };

export const registerStatus = command('status', {
  does: 'show how far each stream is complete, and what is missing',
  options: [
    ['--watch', 'refresh every two seconds, until Ctrl-C'],
    [
      '--check',
      'exit with 4 if action is needed: a stream is parked, late, failing, cannot be certified, or was never synced into a sink',
    ],
    ...(['config', 'source', 'json'] as const),
  ],
  more: EXAMPLES,
  run: status,
});

interface Snapshot {
  streams: readonly StreamStatus[];
  sources: readonly SourceUse[];
  needs: readonly Need[];
}

async function status({ terminal, log, signal, document }: Context, options: StatusOptions): Promise<ExitCode> {
  const { config } = environment.configOrDefaults(options.config);
  if (options.check && Object.keys(config.sources).length === 0)
    throw new ConfigError('there is nothing to check: no source is configured', { next: firstStep(config) });
  const perSecond = new Map(Object.entries(config.sources).map(([name, source]) => [name, source.requestsPerSecond]));
  const maxLags = new Map(
    Object.entries(config.sources).flatMap(([name, { streams, links }]) =>
      Object.entries({ ...streams, ...(links && { links }) }).map(
        ([stream, settings]) => [`${name}/${stream}`, settings?.maxLag] as const,
      ),
    ),
  );
  const show = ({ unmet, ...all }: Omit<Snapshot, 'needs'> & { unmet: readonly Unmet[] }): ExitCode => {
    checkSource(options.source, [...Object.keys(config.sources), ...all.streams.map(({ source }) => source)]);
    const isAsked = ({ source }: { source: string }): boolean =>
      options.source === undefined || source === options.source;
    const streams = all.streams.filter(isAsked);
    // A sink that was removed from the config keeps its state, and needs no action.
    const isWritten = ({ sink }: StreamStatus): boolean => sink === null || sink in config.sinks;
    const wanted = [...maxLags.keys()].filter((key) => isAsked({ source: key.split('/')[0] ?? '' }));
    const needs = [
      ...needsOf(streams.filter(isWritten), unmet.filter(isAsked), maxLags),
      // A first sync in progress needs no action, but users of --check want to use the tables.
      ...(options.check ? unfilledOf(streams, wanted, Object.keys(config.sinks)) : []),
    ];
    const snapshot = { streams, sources: all.sources.filter(isAsked), needs };
    if (options.watch && terminal.isScreen) terminal.out('\x1b[2J\x1b[H');
    if (options.json) terminal.out(document(snapshot, { isLine: options.watch === true }));
    else terminal.say(describeStatus(snapshot, config, terminal.columns));
    return options.check && snapshot.needs.length > 0 ? EXIT.incomplete : EXIT.done;
  };
  if (!hasState(config) && !options.watch) return show({ streams: [], sources: [], unmet: [] });
  return withApp({ config, log }, async ({ state }) => {
    let code: ExitCode;
    const sinks = Object.keys(config.sinks);
    do {
      const unmet = await findUnmet(state, maxLags, sinks);
      code = show({ streams: await readStatus(state), sources: await readUse(state, perSecond), unmet });
    } while (options.watch && terminal.hasReader() && (await pause(terminal, signal)));
    return code;
  });
}

/** Ends early if the terminal is resized. Ctrl-C is the normal end of `--watch`. */
async function pause(terminal: Terminal, signal: AbortSignal): Promise<boolean> {
  const over = new AbortController();
  const either = { signal: AbortSignal.any([signal, over.signal]) };
  await Promise.race([sleep(WATCH_EVERY_MS, true, either), terminal.resized(either.signal)]).catch(() => {});
  over.abort();
  return !signal.aborted;
}

function describeStatus({ streams, sources, needs }: Snapshot, config: Config, columns: number): string {
  const stateName = stateNameOf(config);
  if (streams.length === 0) return `nothing has been synced yet (state: ${stateName})\nnext: ${firstStep(config)}`;
  const isMany = new Set(streams.flatMap(({ sink }) => sink ?? [])).size > 1;
  const shown = COLUMNS.filter(({ header }) => isMany || header !== 'sink');
  const notes = [
    ...streams.flatMap((status) => notesOn(status, streams).map((text) => ({ ...status, text }))),
    ...needs.map((need) => ({ ...need, text: needText(need) })),
  ];
  return [
    fittedTable(shown, streams, columns),
    ...bars(streams, columns, isMany),
    ...[...sources.flatMap(useOf), ...joinedNotes(notes, streams)].map((line) => wrap(line, 2, columns)),
    '',
    `state: ${stateName} · times in UTC`,
  ].join('\n');
}

const COLUMNS: ReadonlyArray<FittedColumn<StreamStatus>> = [
  { header: 'stream', of: (s) => `${s.source}/${s.stream}` },
  // Dropped on a narrow terminal, because the bars show it too.
  { header: 'since', of: (s) => minute(s.since).replace(' 00:00', ''), spare: 2 },
  { header: 'complete through', of: (s) => minute(s.completeThrough) || 'not certified yet' },
  { header: 'newest', of: (s) => minute(s.newestSeen), spare: 1 },
  { header: 'lag', of: lagOf, spare: 4 },
  {
    header: 'last run',
    of: ({ lastRun }) => (lastRun ? `${lastRun.state} ${minute(lastRun.startedAt)}` : ''),
    spare: 3,
  },
  { header: 'sink', of: (s) => s.sink ?? '' },
];

function lagOf({ firstSync, lagSeconds }: StreamStatus): string {
  if (firstSync) return 'first sync';
  return lagSeconds === null ? '' : duration(lagSeconds);
}

function useOf({ source, requestsLastHour, tooManyRequestsLastHour, ...use }: SourceUse): string[] {
  if (requestsLastHour === 0) return [];
  const { requestsPerSecond, shareOfBudget } = use;
  const share = shareOfBudget === null ? '' : `, ${(shareOfBudget * 100).toFixed(1)}% of ${requestsPerSecond}/s`;
  const refused = tooManyRequestsLastHour > 0 ? `, 429s: ${figure(tooManyRequestsLastHour)}` : '';
  return [`${source}: ${counted(requestsLastHour, 'request')} by runs of the last hour${share}${refused}`];
}

interface Note {
  source: string;
  stream: string;
  text: string;
}

/** Prints a note that several streams share once, under the name of the source if all of its streams share it. */
function joinedNotes(notes: readonly Note[], streams: readonly StreamStatus[]): string[] {
  const streamsOf = (all: ReadonlyArray<Pick<Note, 'source' | 'stream'>>, source: string): string[] => [
    ...new Set(all.filter((one) => one.source === source).map(({ stream }) => stream)),
  ];
  return [...new Set(notes.map(({ text }) => text))].map((text) => {
    const own = notes.filter((note) => note.text === text);
    const places = [...new Set(own.map(({ source }) => source))].flatMap((source) => {
      const names = streamsOf(own, source);
      const isWhole = names.length > 1 && names.length === streamsOf(streams, source).length;
      return isWhole ? [source] : names.map((stream) => `${source}/${stream}`);
    });
    return `${places.join(', ')}: ${text}`;
  });
}

/** Without the reason that a stream is parked or failing, which `notesOn` prints. */
const needText = ({ kind, message }: Need): string => {
  const says = { late: `late, ${message}`, unsynced: message }[kind as string] ?? kind;
  return `action needed: ${says}`;
};

function notesOn(status: StreamStatus, all: readonly StreamStatus[]): string[] {
  const { sink, setAside, uncertifiedWindows, parkedWindows, coverage, parked, lastRun } = status;
  const lines: string[] = [];
  if (status.filters !== null)
    lines.push(`filters ${shortened(status.filters, MOST_OF_FILTERS)}: only matching events are complete`);
  lines.push(...alsoComplete(status, all));
  const open = coverage.filter(({ state }) => state === 'gap');
  if (open.length > 0) {
    lines.push(`${counted(open.length, 'gap')} in ${sink}, the first from ${rangeOf(open[0])}: the next sync reads it`);
  }
  if (uncertifiedWindows > 0) {
    lines.push(
      `${counted(uncertifiedWindows, 'window')} not certified in ${sink}; the next sync retries those that are due`,
    );
    for (const window of status.uncertified.slice(0, MOST_SHOWN)) lines.push(describeUncertified(window));
    if (uncertifiedWindows > MOST_SHOWN) lines.push('the others: --json, or tributary.windows');
  }
  if (parkedWindows > 0) lines.push(`of these, retried once a day after five tries: ${figure(parkedWindows)}`);
  if (status.byHandWindows > 0)
    lines.push(`windows marked complete by hand in ${sink}, never read: ${figure(status.byHandWindows)}`);
  if (setAside > 0) lines.push(`${figure(setAside)} set aside: tributary quarantine list shows why`);
  if (parked) {
    const again = parked.nextProbeAt ? `, next try ${minute(parked.nextProbeAt)}` : '';
    // The reason has a line of its own, because streams that share it were parked minutes apart.
    lines.push(`parked: ${parked.reason}`, `parked since ${minute(parked.since)}${again}`);
    lines.push(`next: ${parked.nextStep ?? 'tributary doctor shows what to fix'}`);
  } else lines.push(...nextRunOf(status, Date.now()));
  if (!parked && lastRun?.message && lastRun.message !== lastRun.state) lines.push(`last run: ${lastRun.message}`);
  return lines;
}

/** A worker starts due runs within seconds. */
const OVERDUE_MS = 120_000;

/** The schedule remains after the worker is stopped. */
function nextRunOf({ nextRunAt, lastRun }: StreamStatus, now: number): string[] {
  if (nextRunAt === null) return [];
  if (Date.parse(nextRunAt) > now - OVERDUE_MS) return [`next run by the worker ${minute(nextRunAt)}`];
  // It is synced without the worker.
  if (lastRun && lastRun.startedAt >= nextRunAt) return [];
  return [`was due ${minute(nextRunAt)}, but no worker is running it: start one with tributary start`];
}

/** More windows than this would add no information. */
const MOST_SHOWN = 3;

/** Windows that backfills proved, newest first. The sink is named if sinks differ. */
function alsoComplete(
  { source, stream, sink, alsoComplete: own }: StreamStatus,
  all: readonly StreamStatus[],
): string[] {
  const others = all.filter((one) => one.source === source && one.stream === stream);
  const isSame = others.every((one) => isDeepStrictEqual(one.alsoComplete, own));
  const shown = own.slice(-MOST_SHOWN).reverse();
  return [
    ...shown.map((range) => `also complete${isSame ? '' : ` in ${sink}`}: ${rangeOf(range)}`),
    ...(own.length > shown.length ? [`${counted(own.length - shown.length, 'more range')} complete: see --json`] : []),
  ];
}

const rangeOf = (range: { start: string; end: string } | undefined): string =>
  range ? describeRange({ start: Date.parse(range.start), end: Date.parse(range.end) }) : '';

/** A filter can be long; --json has all of it. */
const MOST_OF_FILTERS = 40;

function describeUncertified({ reason, tries, nextTryAt, ...range }: StreamStatus['uncertified'][number]): string {
  const again = `tried ${tries === 1 ? 'once' : `${tries} times`}, again ${minute(nextTryAt)}`;
  return `not certified: ${rangeOf(range)}: ${reason ?? 'reason unknown'} (${tries === 0 ? 'the next sync reads it' : again})`;
}
