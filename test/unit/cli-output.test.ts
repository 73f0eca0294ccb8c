import { describe, expect, it, test, vi } from 'vitest';
import { createLog, readableLine } from '../../src/app/environment.ts';
import { type SyncApp, stateNameOf } from '../../src/app/index.ts';
import { EXIT, exitCodeOf, mostSevere } from '../../src/cli/command.ts';
import { notes, summaryJson, summaryTable } from '../../src/cli/commands/sync.ts';
import { createBackfillLine, createProgressLine, withRetryLines } from '../../src/cli/progress.ts';
import { createTerminal, describeTerm, fittedTable, type Terminal, table, wrap } from '../../src/cli/terminal.ts';
import type { Config } from '../../src/config/index.ts';
import { emptyTally, type Tally } from '../../src/cursor/runs.ts';
import { BadRecord, Cancelled, ConfigError, type Fault, RetryLater, StopStream } from '../../src/model/errors.ts';
import type { StreamName } from '../../src/model/streams.ts';
import type { SyncProgress } from '../../src/sync/job.ts';
import type { Outcome } from '../../src/sync/sync-stream.ts';
import { longLines } from '../support/cli.ts';
import { silentLog } from '../support/silent-log.ts';

const THROUGH = Date.UTC(2026, 10, 15, 2, 18, 12);

function outcome(stream: StreamName, tally: Partial<Tally> = {}, fault?: Fault): Outcome {
  const cursor = { since: 0, completeThrough: THROUGH, newestSeen: THROUGH };
  const state = fault ? 'incomplete' : 'done';
  const full = { ...emptyTally(), ...tally };
  const report = { source: 'main', stream, runId: 'r1', state, tally: full, cursor, fault } as NonNullable<
    Outcome['report']
  >;
  return { source: 'main', stream, report, fault };
}

const USAGE = { requests: 17, activeSeconds: 4, share: 1, pauses: 0, perSecond: 4 };
const APP = {
  usage: () => USAGE,
  sinks: [{ place: 'Postgres schema attribution' }],
  stateName: 'embedded Postgres in .tributary/',
} as unknown as SyncApp;

describe('the summary of a sync', () => {
  it('is a table of results, and fits 80 columns up to millions', () => {
    const tally = { read: 120_988, new: 120_000, changed: 12, unchanged: 976, requests: 1213 };
    const text = summaryTable([outcome('clicks', tally), outcome('leads')]);
    expect(text.split('\n')).toEqual([
      'stream          read      new  changed  same  requests  complete through',
      '───────────  ───────  ───────  ───────  ────  ────────  ────────────────',
      'main/clicks  120,988  120,000       12   976     1,213  2026-11-15 02:18',
      'main/leads         0        0        0     0         0  2026-11-15 02:18',
    ]);
    expect(longLines(summaryTable([outcome('clicks', { ...tally, read: 1_299_000, new: 1_298_000 })]))).toEqual([]);
  });

  it('shows rare events only if they happened', () => {
    const text = summaryTable([outcome('clicks', { quarantined: 3, tooManyRequests: 2 }), outcome('leads')]);
    expect(text).toMatch(/^stream +read +new +changed +same +aside +requests +429s +complete through$/m);
    expect(text).toMatch(/^main\/clicks +0 +0 +0 +0 +3 +0 +2 +2026/m);
    expect(longLines(text)).toEqual([]);
  });

  it("shows each sink's result if they differ", () => {
    const [few, many] = [
      { new: 0, changed: 0, unchanged: 3 },
      { new: 14_000, changed: 0, unchanged: 3 },
    ];
    const of = (sinks: Tally['sinks']): string => notes([outcome('clicks', { sinks })], APP).join('\n');
    expect(of({ warehouse: few, lake: many })).toContain(
      'note     main/clicks: rows by sink: warehouse 0 new, 0 changed · lake 14,000 new, 0 changed',
    );
    expect(of({ warehouse: many, lake: { ...many, unchanged: 9 } })).not.toContain('by sink');
  });

  it('names what did not start', () => {
    const text = summaryTable([{ source: 'main', stream: 'sales', report: undefined, fault: new RetryLater('x') }]);
    expect(text).toMatch(/^main\/sales +not begun$/m);
  });

  it('names the budget, the places, and warnings', () => {
    const spoilt = { quarantined: 2, contradictions: { country: 1200 }, typeMismatches: { qr: 1 } };
    expect(notes([outcome('clicks', spoilt), outcome('leads')], APP)).toEqual([
      'budget   main: 17 requests, 100% of 4/s while there was work',
      'note     main/clicks: deprecated names that contradict their field: country 1,200 (the field won)',
      'note     main/clicks: values that do not fit their column: qr 1 (kept in _extra)',
      'note     main/clicks: 2 set aside: see tributary.quarantine',
      'data in  Postgres schema attribution',
      'state in embedded Postgres in .tributary/ · times in UTC',
    ]);
  });

  it('has the same in JSON, with its errors', () => {
    const fault = new RetryLater('the service is away', { next: 'wait' });
    expect(summaryJson([outcome('clicks', { read: 5 }, fault)], APP)).toMatchObject({
      streams: [
        {
          stream: 'clicks',
          state: 'incomplete',
          read: 5,
          completeThrough: '2026-11-15T02:18:12.000Z',
          error: { message: 'the service is away', kept: null, next: 'wait' },
        },
      ],
      budget: { main: USAGE },
    });
  });
});

test.each([
  ['postgresql://u:p@db.example.com/state', 'Postgres at db.example.com:5432/state'],
  ['postgresql://u:p@%2Fvar%2Frun:5433/state', 'Postgres at /var/run:5433/state'],
  ['postgresql:///state?host=/var/run', 'Postgres at /var/run:5432/state'],
])('the state is named by its address: %s', (url, name) => {
  expect(stateNameOf({ state: { url } } as Config)).toBe(name);
});

describe('exit codes', () => {
  it('depend on what the caller does next', () => {
    const faults = [ConfigError, StopStream, RetryLater, BadRecord, Cancelled].map((Kind) => new Kind('x'));
    expect(faults.map(exitCodeOf)).toEqual([2, 3, 4, 4, 130]);
  });

  it('are that of the most severe stream', () => {
    expect(mostSevere([])).toBe(EXIT.done);
    expect(mostSevere([0, 4, 0])).toBe(4);
    expect(mostSevere([4, 3])).toBe(3);
    expect(mostSevere([3, 2, 4])).toBe(2);
    expect(mostSevere([2, 130])).toBe(130);
  });
});

/** A terminal that records the lines that a user sees. */
function createScreen({ isInteractive = false, columns = 80 }: Partial<Terminal>) {
  const { stderr } = process;
  const screen = { lines: [''] };
  const write = (text: string): boolean => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes begin with one
    for (const part of text.split(/(\r|\n|\x1b\[2K|\x1b\[1A)/)) {
      if (part === '\n') screen.lines.push('');
      else if (part === '\x1b[1A') screen.lines.pop();
      else if (part === '\x1b[2K') screen.lines[screen.lines.length - 1] = '';
      else if (part !== '\r') screen.lines[screen.lines.length - 1] += part;
    }
    return true;
  };
  const own = createTerminal(true, {
    ...stderr,
    on: () => stderr,
    write,
    columns,
    isTTY: isInteractive,
  } as unknown as NodeJS.WriteStream);
  return { terminal: { ...own, columns, isInteractive }, lines: () => screen.lines };
}

describe('the progress line', () => {
  const progress = { source: 'main', stream: 'clicks', rows: 5000, requests: 6, through: undefined } as const;
  const written = (terminal: Partial<Terminal>, updates: readonly SyncProgress[] = [progress]) => {
    const screen = createScreen(terminal);
    const line = createProgressLine(screen.terminal, 1);
    for (const each of updates) line.update(each);
    const shown = screen.lines().at(-1) ?? '';
    line.clear();
    expect(screen.lines()).toEqual(['']);
    return shown;
  };

  it('leaves out streams and requests on a narrow terminal, and is cut at its width', () => {
    const shown = [33, 32, 25, 8].map((columns) => written({ isInteractive: true, columns }));
    expect(shown).toEqual(['rows: clicks 5,000 · requests: 6', 'rows: 5,000 · requests: 6', 'rows: 5,000', 'rows: 5']);
  });

  it('fits all streams in 80 columns, and names the source if there are several', () => {
    const all = (['clicks', 'leads', 'sales'] as const).map((stream) => ({ ...progress, stream, rows: 1_234_567 }));
    expect(written({ isInteractive: true }, all)).toBe(
      'rows: clicks 1,234,567 · leads 1,234,567 · sales 1,234,567 · requests: 18',
    );
    expect(written({ isInteractive: true }, [progress, { ...progress, source: 'eu' }])).toBe(
      'rows: main/clicks 5,000 · eu/clicks 5,000 · requests: 12',
    );
  });

  it('prints nothing for the first seconds in a pipe, and never an escape code', () => {
    expect(written({ isInteractive: false })).toBe('');
  });

  it('fits the time left in 80 columns, however large the figures are', () => {
    const { terminal, lines } = createScreen({ isInteractive: true });
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    const sync = createProgressLine(terminal, 3);
    const backfill = createBackfillLine(terminal, 3, () => 0.99);
    clock.mockReturnValue(3_000_000);
    const shown = [sync, backfill].map(({ update }) => {
      for (const stream of ['clicks', 'leads', 'sales'] as const)
        update({ ...progress, stream, rows: 12_345_678, requests: 12_345, done: 0.25 });
      return lines().at(-1);
    });
    clock.mockRestore();
    expect(shown).toEqual([
      'rows: 37,037,034 · requests: 37,035 · 12,346/s · 25% · 3 h left',
      '█████░░░░░░░░░░░░░░░ 25% · 37,037,034 rows · 37,035 req · 12,346/s · 3 h left',
    ]);
  });

  it('never decreases, whatever a later phase reports', () => {
    const { terminal, lines } = createScreen({ isInteractive: true });
    const line = createBackfillLine(terminal, 1, () => undefined);
    const shown = [0.3, 0.9, 0.1, undefined, 0.95].map((done) => {
      line.update({ ...progress, ...(done !== undefined && { done }) });
      return Number(/(\d+)%/.exec(lines().at(-1) ?? '')?.[1]);
    });
    expect(shown).toEqual([30, 90, 90, 90, 95]);
  });
});

describe('retries', () => {
  const failed = { stream: 'clicks', page: 1, status: 503 };
  const message = 'trying again: the service answered 503';
  const log = { ...silentLog, child: () => silentLog };

  it('are one live line for each stream, below other output; progress of the stream removes it', () => {
    const { terminal, lines } = createScreen({ isInteractive: true });
    const progress = createProgressLine(terminal, 2);
    const main = withRetryLines(log, terminal).child({ source: 'main' });
    progress.update({ source: 'main', stream: 'leads', rows: 5, requests: 1, through: undefined });
    for (const attempt of [1, 2, 3, 4, 5]) {
      main.warn({ ...failed, attempt, waitMs: 2 ** attempt * 1000 }, message);
      main.warn({ ...failed, stream: 'sales', attempt, waitMs: 100 }, message);
    }
    terminal.err('warn: something else\n');
    expect(lines()).toEqual([
      'warn: something else',
      'rows: leads 5 · requests: 1',
      'main/clicks: attempt 6 in 32 s, trying again: the service answered 503',
      'main/sales: attempt 6, trying again: the service answered 503',
    ]);
    progress.update({ source: 'main', stream: 'clicks', rows: 7, requests: 9, through: undefined });
    expect(lines().join()).not.toContain('main/clicks:');
    progress.clear();
    expect(lines()).toEqual(['warn: something else', '']);
  });

  it('are not shown for a first 429 with a short pause, which the summary counts', () => {
    const { terminal, lines } = createScreen({ isInteractive: false });
    const log429 = withRetryLines(log, terminal).child({ source: 'main', status: 429 });
    log429.warn({ stream: 'clicks', attempt: 1, waitMs: 1000 }, 'first');
    log429.warn({ stream: 'clicks', attempt: 2, waitMs: 1000 }, 'again');
    log429.warn({ stream: 'leads', attempt: 1, waitMs: 60_000 }, 'long');
    const named = ['main/clicks: attempt 3 in 1 s, again', 'main/leads: attempt 2 in 60 s, long'];
    expect(lines().filter(Boolean)).toEqual(named);
  });

  it('are a few plain lines in a pipe', () => {
    const { terminal, lines } = createScreen({ isInteractive: false });
    const main = withRetryLines(log, terminal).child({ source: 'main' });
    for (const stream of ['clicks', 'leads']) {
      for (const attempt of [1, 2, 3, 4, 5]) main.warn({ ...failed, stream, attempt, waitMs: 4000 }, message);
    }
    expect(lines()).toEqual([
      'main/clicks: attempt 2 in 4 s, trying again: the service answered 503',
      'main/leads: attempt 2 in 4 s, trying again: the service answered 503',
      '',
    ]);
  });

  it('leave other warnings unchanged', () => {
    const seen: unknown[] = [];
    const { terminal } = createScreen({ isInteractive: true });
    withRetryLines({ ...silentLog, warn: (...line: unknown[]) => void seen.push(line) }, terminal).warn(
      { a: 1 },
      'odd',
    );
    expect(seen).toEqual([[{ a: 1 }, 'odd']]);
  });
});

it('an error of several lines is wrapped at words on a terminal, and unchanged in a pipe', () => {
  const said = (isInteractive: boolean): string => {
    const { terminal, lines } = createScreen({ isInteractive, columns: 30 });
    terminal.err('two faults:\n  a.yaml:1:1 it is not known to anybody\nnext: wait');
    return lines().join('\n');
  };
  expect(said(true)).toBe('two faults:\n  a.yaml:1:1 it is not\n    known to anybody\nnext: wait');
  expect(said(false)).toBe('two faults:\n  a.yaml:1:1 it is not known to anybody\nnext: wait');
});

describe('text', () => {
  it('of a table: text to the left, figures to the right', () => {
    expect(
      table(
        ['name', 'rows'],
        [
          ['é', '1,000'],
          ['long name', '5'],
        ],
      ),
    ).toBe('name        rows\n─────────  ─────\né          1,000\nlong name      5');
  });

  it('of a table cannot be reversed by a name with bidirectional marks', () => {
    expect(table(['name'], [['a\u202ecba']])).toBe('name\n─────\na\ufffdcba');
  });

  it('of a table that is too wide drops its least important columns first', () => {
    const columns = [
      { header: 'name', of: (row: string) => row },
      { header: 'a', of: () => 'aaaa', spare: 2 },
      { header: 'b', of: () => 'bbbb', spare: 1 },
    ];
    const headers = (width: number) => fittedTable(columns, ['x'], width).split('\n')[0]?.split(/ +/);
    expect([16, 15, 10, 9, 1].map(headers)).toEqual([
      ['name', 'a', 'b'],
      ['name', 'a'],
      ['name', 'a'],
      ['name'],
      ['name'],
    ]);
  });

  it('of a table that is still too wide has its widest column truncated', () => {
    const columns = [
      { header: 'id', of: () => '17' },
      { header: 'reason', of: (row: string) => row },
      { header: 'b', of: () => 'bbbb', spare: 1 },
    ];
    expect(fittedTable(columns, ['the record has no time', 'short'], 20).split('\n')).toEqual([
      'id  reason',
      '──  ────────────────',
      '17  the record has …',
      '17  short',
    ]);
    expect(fittedTable(columns, ['marketing-europe/clicks'], 20)).toContain('17  marketin…/clicks');
  });

  it('wraps at 80 columns', () => {
    expect(wrap('aaa bbb ccc', 2, 10)).toBe('aaa bbb\n  ccc');
    expect(describeTerm('a=1', 'what it does', 8)).toBe('  a=1   what it does');
    expect(describeTerm('a-long-one', 'what it does', 8)).toBe('  a-long-one\n        what it does');
  });

  it('of a log line for people names the stream', () => {
    const line = { level: 40, msg: 'trying again', source: 'main', stream: 'clicks' };
    expect(readableLine(JSON.stringify(line))).toBe('warn: main/clicks: trying again\n');
    expect(readableLine(JSON.stringify({ level: 30, msg: 'x' }))).toBe('info: x\n');
  });

  it('refuses an unknown log level', () => {
    expect(() => createLog({ level: 'loud' })).toThrow(ConfigError);
  });
});
