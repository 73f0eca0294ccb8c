import { describe, expect, it } from 'vitest';
import {
  inOrder,
  type Observation,
  type PageQuery,
  provenBy,
  type Stamped,
  WIDENED_MS,
} from '../../src/extract/proof/answer.ts';
import { Certified, prove } from '../../src/extract/proof/certified.ts';
import {
  allTiesSeen,
  aroundUnreadable,
  type Count,
  countOf,
  EMPTY_BEHIND,
  type Unreadable,
} from '../../src/extract/proof/counting.ts';
import { APART_MS, NARROW_MS } from '../../src/extract/proof/cover.ts';
import { FAR_AHEAD_MS } from '../../src/extract/proof/ends.ts';
import { Evidence } from '../../src/extract/proof/evidence.ts';
import type { Prior } from '../../src/extract/proof/prior.ts';
import { certified } from '../support/certified.ts';

/**
 * The rules of evidence (docs/internals/extraction.md), one by one: what suffices, and what does not. Written from the contract, not from the code. A test
 * marked `it.fails` shows a way to fool the kernel that is known and not fixed: it turns red on the day that it is.
 */

const DAY = 86_400_000;
/** Long after everything below, so that all of it has settled. */
const NOW = 1000 * DAY;

type Shown = Stamped | number;

/** A row by its time; its id is made of it. */
const row = (shown: Shown): Stamped => (typeof shown === 'number' ? { id: `r${shown}`, at: shown } : shown);
const tie = (at: number, ...names: string[]): Stamped[] => names.map((id) => ({ id, at }));

/** An answer, by default the first page from 0 to beyond the present, oldest first, with room for ten rows. */
function answer(shown: readonly Shown[], query: Partial<PageQuery> = {}, more: Partial<Observation> = {}): Observation {
  return {
    query: { order: 'asc', start: 0, end: NOW + DAY, page: 1, limit: 10, ...query },
    rows: shown.map(row),
    count: shown.length,
    answeredAt: NOW,
    ...more,
  };
}

const newest = (shown: readonly Shown[], query: Partial<PageQuery> = {}, more: Partial<Observation> = {}) =>
  answer(shown, { order: 'desc', ...query }, more);

const timesOf = (sorted: readonly Stamped[] | undefined): number[] | undefined => sorted?.map(({ at }) => at);

const evidenceOf = (answers: readonly Observation[], known: Partial<Prior> = {}): Evidence => {
  const evidence = new Evidence({ settleMs: 0, ...known });
  for (const each of answers) evidence.admit(each);
  return evidence;
};

/** Whether a window is certified by these answers. */
const proves = (start: number, end: number, evidence: Evidence): boolean =>
  prove({ start, end }, evidence).proven !== undefined;

describe('order: the answer is sorted as asked', () => {
  it('is taken oldest first, whichever way it was asked', () => {
    expect(timesOf(inOrder(answer([1, 2, 2, 3])))).toEqual([1, 2, 2, 3]);
    expect(timesOf(inOrder(newest([3, 2, 2, 1])))).toEqual([1, 2, 2, 3]);
  });

  it('a few single strays are left out, and prove nothing', () => {
    expect(timesOf(inOrder(answer([10, 20, 5, 30])))).toEqual([10, 20, 30]);
    const rows = Array.from({ length: 100 }, (_, i) => 1000 + i);
    const two = rows.with(30, 7).with(60, 9);
    expect(inOrder(answer(two, { limit: 100 }))).toHaveLength(98);
    expect(inOrder(answer(two.with(80, 11), { limit: 100 }))).toBeUndefined();
  });

  it('a reversed answer proves nothing', () => {
    expect(inOrder(answer([3, 2, 1]))).toBeUndefined();
    expect(inOrder(newest([1, 2, 3]))).toBeUndefined();
    expect(inOrder(answer([2, 1]))).toBeUndefined();
  });

  it('a mixed answer proves nothing', () => {
    expect(inOrder(answer([1, 5, 2, 6, 3, 7]))).toBeUndefined();
    expect(inOrder(answer([2, 1, 3]))).toBeUndefined();
    expect(inOrder(answer([4, 1, 2, 3, 0]))).toBeUndefined();
  });

  it('a reversed page of ties is not one stray', () => {
    expect(inOrder(answer([2, 1, 1, 1]))).toBeUndefined();
    expect(inOrder(answer([2, 2, 2, 1]))).toBeUndefined();
  });

  it('a later page with more rows than were asked for is another page', () => {
    expect(inOrder(answer([1, 2, 3], { limit: 3 }))).toHaveLength(3);
    expect(inOrder(answer([1, 2, 3, 4], { limit: 3, page: 2 }))).toBeUndefined();
    expect(timesOf(inOrder(answer([1, 2, 3, 90], { limit: 3 })))).toEqual([1, 2, 3]);
    expect(timesOf(inOrder(newest([90, 80, 2, 1], { limit: 3 })))).toEqual([2, 80, 90]);
  });

  it('such an answer proves nothing', () => {
    const evidence = evidenceOf([answer([3, 2, 1])]);
    expect(evidence.admit(answer([9, 8, 7]))).toEqual({ kind: 'unordered' });
    expect(evidence.around(2)).toBeUndefined();
  });

  it('an order that was ignored once is not told by rows of a single instant', () => {
    const evidence = evidenceOf([answer([9, 8, 7])]);
    expect(evidence.admit(answer([8]))).toEqual({ kind: 'unordered' });
    expect(evidence.admit(newest([8]))).toMatchObject({ kind: 'counts' });
    expect(evidence.admit(answer([7, 8]))).toMatchObject({ kind: 'counts' });
    expect(evidence.admit(answer([]))).toEqual({ kind: 'empty' });
  });

  it('one time that lies years beside the question does not make a short page unordered, two do', () => {
    const question = { start: 900 * DAY, end: 901 * DAY };
    expect(timesOf(inOrder(answer([900 * DAY + 5, DAY], question)))).toEqual([900 * DAY + 5]);
    expect(inOrder(answer([900 * DAY + 5, 2 * DAY, DAY], question))).toBeUndefined();
  });
});

describe('reach: rows that no widening explains are no edges', () => {
  const asked = { start: 100 * DAY, end: 101 * DAY };
  const rows = [100 * DAY + 1, 100 * DAY + 2, 100 * DAY + 3];

  it('widened bounds are: whole days around both sides, in any zone', () => {
    const widened = [99 * DAY, 99.5 * DAY, ...rows, 101.5 * DAY, 102 * DAY];
    expect(timesOf(inOrder(answer(widened, asked)))).toEqual(widened);
  });

  it('a garbled time at the edge of a page is not, although it stands in order', () => {
    expect(timesOf(inOrder(answer([0, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 500 * DAY], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([100 * DAY - WIDENED_MS - 1, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 101 * DAY + WIDENED_MS + 1], asked)))).toEqual(rows);
  });

  it('nor are several', () => {
    expect(timesOf(inOrder(answer([0, 1, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 500 * DAY, 501 * DAY], asked)))).toEqual(rows);
  });

  it('nor is a single row close by: a widening shows more than one', () => {
    expect(timesOf(inOrder(answer([99 * DAY, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 102 * DAY], asked)))).toEqual(rows);
  });

  it('so that nothing up to there is called complete', () => {
    const evidence = evidenceOf([answer([0, ...rows, 500 * DAY], asked)]);
    expect(evidence.around(50 * DAY)).toBeUndefined();
    expect(evidence.around(400 * DAY)).toBeUndefined();
    expect(evidence.around(100 * DAY + 2)).toBeDefined();
  });

  it('a service that ignores bounds is read by what it shows', () => {
    expect(timesOf(inOrder(answer([1, 2, 3], asked)))).toEqual([1, 2, 3]);
  });

  // Only rows far outside of the question, on both sides of it: two garbled times, and everything between them would be proven.
  it('an answer that lies outside of the question on both sides proves nothing', () => {
    for (const newer of [400 * DAY, 500 * DAY])
      expect(evidenceOf([answer([0, newer], asked)]).around(300 * DAY)).toBeUndefined();
  });
});

describe('between: every row strictly between the edges of an answer is on it', () => {
  it('is what lies between its oldest and its newest row', () => {
    expect(provenBy([1, 2, 5].map(row))).toEqual({ after: 1, before: 5 });
    expect(proves(2, 5, evidenceOf([answer([1, 2, 5])]))).toBe(true);
  });

  it('begins at the start of the question where its oldest row is shown in whole seconds', () => {
    const evidence = evidenceOf([answer([7000, 8000], { start: 7510 })]);
    expect([proves(7001, 8000, evidence), proves(7511, 8000, evidence)]).toEqual([false, true]);
  });

  it('is not the instant of an edge: more rows may share it', () => {
    const evidence = evidenceOf([answer([1, 2, 5])]);
    expect(proves(1, 5, evidence)).toBe(false);
    expect(proves(2, 5.001, evidence)).toBe(false);
  });

  it('is nothing on a page of one instant, of one row, or without a row', () => {
    expect(provenBy(tie(3, 'a', 'b'))).toBeUndefined();
    expect(provenBy([row(3)])).toBeUndefined();
    expect(provenBy([])).toBeUndefined();
  });

  it('neither the asked bounds, nor a page that is not full, nor an empty page prove anything more', () => {
    const short = evidenceOf([answer([100, 200], { start: 50, end: 300, limit: 1000 })]);
    expect(proves(50, 200, short)).toBe(false);
    expect(proves(101, 300, short)).toBe(false);
    const empty = new Evidence({ settleMs: 0 });
    expect(empty.admit(answer([], { start: 50, end: 300 }))).toEqual({ kind: 'empty' });
    expect(proves(60, 70, empty)).toBe(false);
  });
});

const HOUR = 3_600_000;
const MINUTE = 60_000;
const END = NOW + 2 * DAY;

describe('end: the newest rows first, up to the present, shown by another question, and the time since then is covered', () => {
  const rows = [NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - HOUR];
  const candidate = newest(rows.toReversed(), { start: NOW - 30 * DAY, end: END, limit: 100 });
  const again = answer(rows.slice(-2), { start: NOW - 2 * HOUR - 1, end: END, limit: 50 });
  /** It ends right behind a row, which shows: ends are kept. */
  const kept = newest([NOW - 4 * HOUR], { start: NOW - 5 * HOUR, end: NOW - 4 * HOUR + 1000 });
  const ends = (answers: readonly Observation[], known: Partial<Prior> = {}, before: Observation[] = [kept]): boolean =>
    proves(NOW - 2 * HOUR, NOW, evidenceOf([...before, ...answers], known));
  const proven = { newestSeen: NOW - HOUR, isProven: true };

  it('suffices on a new stream; on one that was proven, the page with rows that are known does', () => {
    expect([ends([candidate, again]), ends([again, candidate]), ends([candidate], proven)]).toEqual([true, true, true]);
  });

  it('on a new stream, not the page alone', () => expect(ends([candidate])).toBe(false));

  it('not another page, another order, or an end before the present', () => {
    for (const query of [{ page: 2 }, { order: 'asc' as const }, { end: NOW - HOUR }]) {
      const other = {
        ...candidate,
        query: { ...candidate.query, ...query },
        rows: query.order ? rows.map(row) : candidate.rows,
      };
      expect(ends([other], { ...proven, keepsEnds: true }), JSON.stringify(query)).toBe(false);
    }
  });

  it('a question that ends right behind a row shows it, or did in an earlier run', () => {
    const both = [candidate, again];
    const right = newest(rows.toReversed(), { start: NOW - DAY, end: NOW - HOUR + 1000 });
    const cut = newest(rows.slice(0, 2).toReversed(), { start: NOW - DAY, end: NOW - HOUR + 1000 });
    // An end that is rounded down to the minute shows this row even so.
    const edge = answer([NOW - DAY - 400], { start: NOW - 2 * DAY, end: NOW - DAY + 600 });
    for (const known of [{}, proven, { ...proven, newestSeen: NOW - HOUR + 1000, keepsEnds: true }]) {
      expect(ends(both, known, [])).toBe(false);
      expect(ends([...both, cut], known, [])).toBe(false);
      expect(ends([...both, edge], known, [])).toBe(false);
    }
    expect([ends([...both, right], {}, []), ends([...both, right], proven, [])]).toEqual([true, true]);
    expect(ends(both, { ...proven, keepsEnds: true }, [])).toBe(true);
    // Rows on both sides of its end: it is widened.
    const wide = newest(rows.toReversed(), { start: NOW - DAY, end: NOW - 2.5 * HOUR });
    const beyond = newest([NOW - HOUR], { start: NOW - DAY, end: NOW - 1.5 * HOUR });
    expect([ends([...both, wide], {}, []), ends([...both, beyond], {}, [])]).toEqual([true, false]);
  });

  it('a little later where so much is not settled, and in the same hour', () => {
    const isKept = (at: number, after: number, settleMs: number): boolean =>
      evidenceOf([newest([at], { start: at - HOUR, end: at + after })], { settleMs }).ends.areKept;
    const at = NOW - 3 * HOUR;
    expect([isKept(at, MINUTE, 0), isKept(at, MINUTE, MINUTE), isKept(at, MINUTE, 2 * MINUTE)]).toEqual([
      ...[false, false, true],
    ]);
    expect([isKept(at, 2 * MINUTE + 1, 9 * MINUTE), isKept(at - 1, MINUTE, 9 * MINUTE)]).toEqual([false, false]);
  });

  it('or one at the present hides what one that lies far ahead shows, which is settled', () => {
    const known = { ...proven, settleMs: 10 * MINUTE };
    const reaches = (rows: readonly number[], query: Partial<PageQuery> = {}, first = candidate): boolean =>
      proves(
        NOW - 2 * HOUR,
        NOW - 10 * MINUTE,
        evidenceOf([first, newest(rows, { start: NOW - DAY, end: NOW, ...query })], known),
      );
    expect([reaches([NOW - 2 * HOUR]), reaches([NOW - HOUR]), reaches([])]).toEqual([true, false, false]);
    expect([reaches([NOW - 2 * HOUR], { order: 'asc' }), reaches([NOW - 2 * HOUR], { end: NOW - HOUR })]).toEqual([
      ...[false, false],
    ]);
    const late = newest([NOW - 9 * MINUTE, NOW - HOUR], { start: NOW - DAY, end: END });
    const before = newest([NOW - HOUR], { start: NOW - DAY, end: NOW });
    expect(evidenceOf([late, before], known).ends.reachAhead).toBe(false);
    // A little ahead of the service's clock is not far enough.
    const ahead = (ms: number): Observation => ({ ...candidate, query: { ...candidate.query, end: NOW + ms } });
    expect([FAR_AHEAD_MS - 1, FAR_AHEAD_MS].map((ms) => reaches([NOW - 2 * HOUR], {}, ahead(ms)))).toEqual([
      ...[false, true],
    ]);
  });

  it('where nothing shows that, up to as long ago as ends may be shifted, or to the newest row', () => {
    const old = newest([NOW - 50 * HOUR, NOW - 60 * HOUR], { start: NOW - 30 * DAY, end: END, limit: 100 });
    const known = { newestSeen: NOW - 50 * HOUR, isProven: true, quietThrough: NOW };
    const evidence = evidenceOf([old], known);
    const through = NOW - WIDENED_MS;
    expect([proves(NOW - 59 * HOUR, through, evidence), proves(NOW - 59 * HOUR, through + 1, evidence)]).toEqual([
      ...[true, false],
    ]);
    expect([evidence.knowsEnd, evidence.shownThrough, evidence.quietThrough]).toEqual([true, through, NOW]);
    expect(evidenceOf([candidate], proven).shownThrough).toBe(NOW - HOUR);
    expect(evidenceOf([old], { ...known, keepsEnds: true }).shownThrough).toBe(Number.POSITIVE_INFINITY);
    // What another reading of the run has shown of ends counts, too.
    const other = evidence.fork();
    evidence.admit(kept);
    other.admitEnd();
    expect(other.shownThrough).toBe(Number.POSITIVE_INFINITY);
  });

  it('an end before the present says nothing of the time before it either: ends are rounded down', () => {
    const early = { ...candidate, query: { ...candidate.query, end: NOW - HOUR / 2 } };
    expect(proves(NOW - 2 * HOUR, NOW - HOUR + 5, evidenceOf([early], { ...proven, keepsEnds: true }))).toBe(false);
  });

  it('where a newer row was seen by an earlier run: only if a short question shows that it is gone', () => {
    const known = { ...proven, newestSeen: NOW - HOUR + 1000 };
    const from = (start: number): Observation => answer(rows.slice(-1), { start, end: END, limit: 50 });
    const long = from(NOW - NARROW_MS - HOUR);
    expect(ends([candidate, long], known)).toBe(false);
    expect(ends([candidate, long, from(NOW - HOUR - 1)], known)).toBe(true);
    // Gone, but no other question shows the row that would then be the newest.
    expect(ends([candidate, answer([], { start: NOW - HOUR + 500, end: END, limit: 50 })], known)).toBe(false);
    // It shows again, and nothing that was concluded without it stands.
    const back = answer([known.newestSeen], { start: NOW - HOUR + 500, end: END, limit: 50 });
    expect(ends([candidate, long, from(NOW - HOUR - 1), back, candidate, from(NOW - HOUR - 2)], known)).toBe(false);
  });

  it('not where a newer row is known, before or behind it', () => {
    expect(ends([candidate], { ...proven, newestSeen: NOW - HOUR + 1 })).toBe(false);
    const newer = answer([NOW - HOUR + 5], { start: NOW - HOUR + 1, end: END });
    expect([ends([newer, candidate], proven), ends([candidate, newer, again])]).toEqual([false, false]);
  });

  it('the other question: another limit, oldest first, near that row, up to the present, and that row is its newest', () => {
    const changed = (query: Partial<PageQuery>, shown: readonly number[] = rows.slice(-2)): boolean =>
      ends([candidate, answer(shown, { ...again.query, ...query })]);
    expect(changed({ limit: 80 })).toBe(false);
    expect(changed({ start: NOW - 20 * DAY })).toBe(false);
    expect(changed({ end: NOW - HOUR + 1 })).toBe(false);
    expect(changed({}, [NOW - 2 * HOUR])).toBe(false);
    expect(changed({ limit: 2 })).toBe(false);
  });

  it('newest first only where oldest first does not reach that row, and from another start', () => {
    const desc = newest(rows.toReversed().slice(0, 2), { start: NOW - 2 * HOUR - 1, end: END, limit: 50 });
    const crowded = answer([NOW - 2 * HOUR], { start: NOW - 2 * HOUR - 1, end: END, limit: 1 });
    expect([ends([candidate, desc]), ends([candidate, crowded, desc])]).toEqual([false, true]);
    const same = { ...desc, query: { ...desc.query, start: candidate.query.start } };
    expect(ends([candidate, crowded, same])).toBe(false);
    expect(ends([candidate, crowded, { ...desc, rows: desc.rows.slice(1), count: 1 }])).toBe(false);
  });

  describe('after a silence', () => {
    const at = NOW - 10 * DAY;
    const old = newest([at, at - DAY, at - 2 * DAY], { start: NOW - 30 * DAY, end: END, limit: 100 });
    const known = { newestSeen: at, isProven: true };
    const piece = (from: number, to: number, shown: readonly number[] = []): Observation =>
      answer(shown, { start: from, end: to, limit: 100 });
    /** As long as the range that the page has filled, and the latest hours by themselves. */
    const pieces = [0, 1, 2, 3, 4].map((i) => piece(at + 2 * i * DAY, at + 2 * (i + 1) * DAY, i === 0 ? [at] : []));
    const latest = piece(NOW - 5 * HOUR, END);
    const quiet = (answers: readonly Observation[], more: Partial<Prior> = {}): boolean =>
      proves(at - DAY, NOW, evidenceOf([old, ...answers], { ...known, keepsEnds: true, ...more }));

    it('short questions cover it without a hole', () => {
      expect(quiet([...pieces, latest])).toBe(true);
      expect(quiet(pieces.toSpliced(2, 1, latest))).toBe(false);
    });

    it('not longer ones: these are cut without a word', () => {
      expect(quiet([piece(at, NOW - DAY, [at]), piece(NOW - 2 * DAY, END), latest])).toBe(false);
    });

    it('the latest hours by themselves: recent rows may be kept apart', () => expect(quiet(pieces)).toBe(false));

    it('not a page of one row that is empty: it may be hidden', () => {
      const single = pieces.map((each, i) => (i === 0 ? each : { ...each, query: { ...each.query, limit: 1 } }));
      expect(quiet([...single, latest])).toBe(false);
    });

    it('rows of one instant that fill the page beside it: from right behind them, or a later page shows that they come newest first', () => {
      const full = (query: Partial<PageQuery>): Observation =>
        newest(tie(at, 'a', 'b'), { start: at - HOUR, end: at + DAY, limit: 2, ...query });
      const others = [piece(at + DAY, at + 2 * DAY), ...pieces.slice(1), latest];
      const behind = (ms: number): Observation => piece(at + ms, at + 2 * DAY);
      expect([quiet([full({}), ...others]), quiet([full({}), full({ page: 2 }), ...others])]).toEqual([false, false]);
      const older = newest([row({ id: 'c', at }), at - HOUR / 2], full({ page: 2 }).query);
      expect(quiet([full({}), older, ...others])).toBe(true);
      expect([quiet([behind(1000), ...others]), quiet([behind(1001), ...others])]).toEqual([true, false]);
    });

    it('the latest hours may have been asked for a little before', () => {
      const earlier = (ms: number): Observation => ({ ...piece(NOW - ms - 5 * HOUR, END), answeredAt: NOW - ms });
      expect([quiet([...pieces, earlier(HOUR)]), quiet([...pieces, earlier(HOUR + 1)])]).toEqual([true, false]);
    });

    it('what was covered up to an hour ago need not be again', () => {
      expect(quiet([], { quietThrough: NOW - HOUR })).toBe(true);
      expect(quiet([], { quietThrough: NOW - 2 * HOUR })).toBe(false);
      expect(quiet([piece(NOW - 3 * HOUR, END)], { quietThrough: NOW - 2 * HOUR })).toBe(true);
    });
  });
});

describe('beginning: the oldest rows first, from well before, and the time up to the first is covered', () => {
  const edge = 500 * DAY;
  const first = edge + 2 * DAY;
  const shown = [first, first + DAY, first + 3 * DAY];
  const long = answer(shown, { start: edge - APART_MS - DAY, end: END, limit: 100 });
  const beside = answer([first], { start: first - 2 * DAY + 2 * HOUR, end: first + HOUR, limit: 50 });
  const far = answer([], { start: edge - 1, end: edge + 3 * HOUR, limit: 100 });
  const begins = (answers: readonly Observation[], known: Partial<Prior> = {}): boolean => {
    const evidence = evidenceOf(answers, known);
    evidence.admitBeginning(edge);
    return proves(edge, first + DAY, evidence);
  };

  it('suffices', () => expect(begins([long, beside, far])).toBe(true));

  it('not without the long question, the short one beside the row, or the far side by itself', () => {
    expect([begins([beside, far]), begins([long, far]), begins([long, beside])]).toEqual([false, false, false]);
  });

  it('the long one begins further back than any rounding explains, or where the service was founded', () => {
    const near = { ...long, query: { ...long.query, start: edge - DAY } };
    expect([begins([near, beside, far]), begins([near, beside, far], { founded: edge - DAY })]).toEqual([false, true]);
  });

  it('not with a hole, the same page size, another first row, or where an older row was seen', () => {
    const later = { ...beside, query: { ...beside.query, start: first - DAY } };
    const same = { ...beside, query: { ...beside.query, limit: 80 } };
    const other = answer([first + 5], beside.query);
    const older = answer([edge + HOUR], { start: edge + HOUR, end: edge + 2 * HOUR });
    for (const looks of [
      [later, far],
      [same, far],
      [other, far],
      [beside, far, older],
    ])
      expect(begins([long, ...looks])).toBe(false);
  });

  it('not by a long question that leaves out a row which is known in its range, wherever it is', () => {
    const before = answer([edge - 10 * DAY], { start: edge - 10 * DAY - 1, end: edge - 9 * DAY });
    const unordered = answer([edge + 2 * HOUR, edge + HOUR], { start: edge, end: edge + DAY });
    expect([begins([long, beside, far, before]), begins([long, beside, far, unordered])]).toEqual([false, false]);
  });

  it('not by a short question that is longer than any range that was filled with rows', () => {
    const few = answer([first, first + HOUR], { ...long.query });
    const wide = { ...beside, query: { ...beside.query, start: edge - 1 } };
    const evidence = evidenceOf([few, wide, far]);
    evidence.admitBeginning(edge);
    expect(proves(edge, first, evidence)).toBe(false);
  });
});

describe('nothing: no question shows a row, long or short, at two polls', () => {
  const window = { start: NOW - DAY, end: NOW - HOUR };
  const asked = (query: Partial<PageQuery>): Observation => answer([], { limit: 100, ...query });
  const start = window.start - APART_MS - 1;
  const longs = [asked({ start, end: END }), asked({ order: 'desc', start, end: END })];
  const pieces = [0, 1, 2, 3].map((i) =>
    asked({ start: NOW - DAY - 1 + i * NARROW_MS, end: NOW - DAY + (i + 1) * NARROW_MS }),
  );
  const isEmpty = (answers: readonly Observation[], known: Partial<Prior> = { empty: [window] }): boolean => {
    const evidence = evidenceOf(answers, known);
    evidence.admitNothing();
    return proves(window.start, window.end, evidence);
  };

  it('suffices where an earlier poll found the same', () => expect(isEmpty([...longs, ...pieces])).toBe(true));

  it('not at the first poll, however often it is asked', () =>
    expect(isEmpty([...longs, ...longs, ...pieces], {})).toBe(false));

  it('not where any question is missing', () => {
    const all = [...longs, ...pieces];
    for (const i of [0, 1, 2, 3]) expect(isEmpty(all.toSpliced(i, 1)), `${i}`).toBe(false);
  });

  it('not where any answer shows a record, readable or not, or a row was ever seen', () => {
    const unread = { ...asked({ start: NOW - HOUR, end: END }), count: 1 };
    expect(isEmpty([...longs, ...pieces, unread])).toBe(false);
    expect(isEmpty([...longs, ...pieces], { empty: [window], newestSeen: 5 })).toBe(false);
  });
});

describe('cover: where long ranges are refused, short questions that overlap show nothing between two rows', () => {
  const [from, to] = [2 * HOUR, 5 * HOUR];
  const range = (start: number, end: number, shown: readonly number[] = []): Observation =>
    answer(shown, { start: start - 1, end });
  const isSilent = (...between: readonly Observation[]): boolean => {
    const evidence = new Evidence({ settleMs: 0 });
    evidence.limitRange(1.5 * HOUR);
    for (const each of [range(HOUR, from + 2, [HOUR, from]), range(to, to + HOUR, [to]), ...between])
      evidence.admit(each);
    return evidence.admitSilence(from, to);
  };
  const first = range(from, from + 1.5 * HOUR, [from]);
  const overlapping = [range(3 * HOUR, 4.5 * HOUR), range(4 * HOUR, to + 1, [to])];

  it('they begin at the row before it, which shows, and overlap further than bounds are rounded', () => {
    expect(isSilent(first, ...overlapping)).toBe(true);
    expect(isSilent(first, range(3.5 * HOUR, 4.5 * HOUR), range(4.5 * HOUR, to + 1, [to]))).toBe(false);
  });

  it('up to the present only where ends are known to be kept', () => {
    const isEnd = (end: number, keepsEnds: boolean): boolean => {
      const evidence = new Evidence({ settleMs: 0, keepsEnds });
      evidence.limitRange(1.5 * HOUR);
      const row = NOW - 1.2 * HOUR;
      evidence.admit(range(row - HOUR, row + 4000, [row - HOUR, row]));
      evidence.admit(range(row, end, [row]));
      return evidence.admitSilence(row);
    };
    expect([isEnd(NOW + HOUR, false), isEnd(NOW, true), isEnd(NOW + FAR_AHEAD_MS, false)]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('an answer without the row that is known there says nothing of the rest: its end may be rounded down', () => {
    expect(isSilent(range(from, from + 1.5 * HOUR), ...overlapping)).toBe(false);
    const other = range(4 * HOUR, 5.5 * HOUR, [5.3 * HOUR]);
    expect(isSilent(first, range(3 * HOUR, 4.5 * HOUR), other)).toBe(false);
  });
});

describe('stream: an answer with rows of another stream is one to another question', () => {
  it('proves nothing', () => {
    expect(evidenceOf([answer([1, 2, 3])]).through(2)).toBe(3);
    expect(evidenceOf([answer([1, 2, 3], {}, { foreign: 1 })]).through(2)).toBeUndefined();
  });
});

describe('whole: a long question that leaves out what a short one shows is not believed', () => {
  const rows = Array.from({ length: 10 }, (_, i) => NOW - DAY + i * HOUR);
  const sampled = answer([NOW - 20 * DAY, ...rows.filter((_, i) => i % 3 === 0)], {
    start: NOW - 30 * DAY,
    end: END,
    limit: 100,
  });
  const short = answer(rows, { start: NOW - DAY, end: END, limit: 100 });

  it('what it had proven is open again', () => {
    expect(evidenceOf([sampled]).through(NOW - 10 * DAY)).toBeDefined();
    expect(evidenceOf([sampled, short]).through(NOW - 10 * DAY)).toBeUndefined();
  });

  it('also by a short one that is out of order', () => {
    const mixed = { ...short, rows: [...short.rows.slice(5), ...short.rows.slice(0, 5)] };
    expect(inOrder(mixed)).toBeUndefined();
    expect(evidenceOf([sampled, mixed]).through(NOW - 10 * DAY)).toBeUndefined();
  });

  it('and later ones do not say that those rows are gone', () => {
    const later = [1, 2, 3].map((i) => ({ ...sampled, query: { ...sampled.query, start: NOW - 30 * DAY - i } }));
    const evidence = evidenceOf([short, ...later]);
    expect(evidence.through(NOW - 10 * DAY)).toBeUndefined();
    expect(evidence.wholeMs()).toBeLessThanOrEqual(DAY);
  });

  describe('answers of about one length', () => {
    const pages = Array.from({ length: 100 }, (_, i) => NOW - DAY + i * MINUTE);
    const without = (...left: number[]): number[] => pages.filter((_, i) => !left.includes(i));
    const all = answer(pages, { start: NOW - DAY - HOUR, end: END, limit: 1000 });
    const other = (shown: readonly number[], more: Partial<Observation> = {}): Observation =>
      answer(shown, { start: NOW - DAY - 2 * HOUR, end: END, limit: 500 }, more);
    const contradict = (...answers: Observation[]): boolean => evidenceOf(answers).isContradicted;
    const oneInEight = Array.from({ length: 12 }, (_, i) => 4 + 8 * i);

    it('contradict each other where the insides of both are to show rows that one lacks, whichever came first', () => {
      const some = other(without(...oneInEight));
      expect([contradict(all, some), contradict(some, all)]).toEqual([true, true]);
      expect([contradict(all, other(pages)), contradict(all, other(pages.slice(30, 60)))]).toEqual([false, false]);
    });

    it('not by single rows of many, nor at their edges, nor by what may have come since', () => {
      expect(contradict(all, other(without(20, 40, 60)))).toBe(false);
      expect(contradict(all, other(pages.slice(10, 90)))).toBe(false);
      // Of the hour before it was answered, an answer may lack any.
      const early = (...left: number[]) => other(without(...left), { answeredAt: NOW - DAY + 100 * MINUTE });
      const late = { ...all, answeredAt: NOW };
      expect([contradict(early(5, 10, 15, 20, 25), late), contradict(early(60, 70, 80, 90), late)]).toEqual([
        true,
        false,
      ]);
    });

    it('and a copy of the evidence knows it', () => {
      expect(evidenceOf([all, other(without(...oneInEight))]).fork().isContradicted).toBe(true);
      const copy = evidenceOf([all]).fork();
      copy.admit(other(without(...oneInEight)));
      expect(copy.isContradicted).toBe(true);
    });
  });
});

describe('agreement: an answer that lacks what was seen between its edges proves nothing', () => {
  const first = answer([10, 20, 30]);

  it('rows that were seen before show again', () => {
    expect(evidenceOf([first]).admit(answer([5, 10, 20, 30, 40])).kind).toBe('counts');
  });

  it('until they do, the answer is evidence of nothing', () => {
    const evidence = evidenceOf([first]);
    const contradiction = answer([5, 10, 30, 40]);
    expect(evidence.admit(contradiction)).toEqual({ kind: 'contradicts', missing: [row(20)] });
    expect(evidence.around(35)).toBeUndefined();
    // The same question again is no other question.
    expect(evidence.admit(contradiction).kind).toBe('contradicts');
    expect(evidence.around(35)).toBeUndefined();
  });

  it('another question that lacks it too says that it is gone', () => {
    const evidence = evidenceOf([first, answer([5, 10, 30, 40])]);
    expect(evidence.admit(answer([5, 10, 30, 40], { start: 1 })).kind).toBe('counts');
    expect(evidence.around(35)).toBeDefined();
  });

  it('not where the two show other rows beside it: one of them may be a row from elsewhere', () => {
    const evidence = evidenceOf([answer([100, 110]), newest([300, 200, 5])]);
    expect(evidence.admit(newest([300, 200, 6], { start: 1 })).kind).toBe('contradicts');
    expect(evidence.around(150)).toBeUndefined();
    expect(evidence.admit(newest([300, 200, 6], { start: 2 })).kind).toBe('counts');
  });

  it('a row that shows again in between is known as before', () => {
    const evidence = evidenceOf([first, answer([5, 10, 30, 40]), answer([10, 20, 30])]);
    expect(evidence.admit(answer([5, 10, 30, 40], { start: 1 })).kind).toBe('contradicts');
  });

  it('rows at the edges may be missing: nothing is claimed of their instants', () => {
    expect(evidenceOf([first]).admit(answer([{ id: 'other', at: 10 }, 20, { id: 'another', at: 30 }])).kind).toBe(
      'counts',
    );
  });

  it('on long pages the rows at both edges are known', () => {
    const rows = Array.from({ length: 100 }, (_, i) => 1000 + i);
    const long = answer(rows, { limit: 100 });
    const without = (at: number) => answer([900, ...rows.filter((each) => each !== at), 1200], { limit: 200 });
    expect(evidenceOf([long]).admit(without(1000)).kind).toBe('contradicts');
    expect(evidenceOf([long]).admit(without(1099)).kind).toBe('contradicts');
  });
});

describe('settled: an answer says nothing of what is younger than its clock less the settle time', () => {
  const rows = [10, 20, 30, 40];

  it('what has settled is proven, and no more', () => {
    const evidence = evidenceOf([answer(rows, {}, { answeredAt: 40 })], { settleMs: 15 });
    expect(proves(11, 25, evidence)).toBe(true);
    expect(proves(11, 26, evidence)).toBe(false);
    expect(evidence.settledThrough).toBe(25);
  });

  it('an answer that is all too young proves nothing', () => {
    const evidence = evidenceOf([answer(rows, {}, { answeredAt: 40 })], { settleMs: 30 });
    expect(evidence.around(11)).toBeUndefined();
  });

  it('holds for the newest page of all, too', () => {
    const page = newest([40, 30, 20], { start: NOW - 1, end: END });
    const evidence = evidenceOf([page], { settleMs: 100, newestSeen: 40, isProven: true, keepsEnds: true });
    expect(proves(21, NOW - 100, evidence)).toBe(true);
    expect(proves(21, NOW - 99, evidence)).toBe(false);
  });

  // Counted before it had settled; then an answer ends right there, later. A row that came late in between is missing from both.
  it('holds for ties that were counted, too', () => {
    const evidence = new Evidence({ settleMs: 100 });
    const pass = (limit: number): Count => ({
      limit,
      order: 'asc',
      positions: 2,
      ids: new Set(['a', 'b']),
      isOpen: false,
      answeredAt: 1000,
    });
    for (const limit of [3, 2]) evidence.admitCount(950, pass(limit));
    evidence.admit(answer([900, 920, ...tie(950, 'a')], {}, { answeredAt: 2000 }));
    expect(evidence.through(920)).toBe(950);
  });
});

describe('overlap: intervals join where their insides overlap', () => {
  it('suffices', () => {
    const evidence = evidenceOf([answer([10, 20, 30]), answer([20, 30, 40])]);
    expect(proves(11, 40, evidence)).toBe(true);
  });

  it('joins whatever lies between', () => {
    const evidence = evidenceOf([answer([10, 20]), answer([30, 40]), answer([15, 20, 30, 35])]);
    expect(evidence.around(12)).toEqual({ after: 10, before: 40 });
  });

  it('pages that only touch leave the instant between them open', () => {
    const evidence = evidenceOf([answer([10, 20]), answer([20, 30], { page: 2 })]);
    expect(proves(11, 30, evidence)).toBe(false);
    expect(prove({ start: 11, end: 30 }, evidence).gaps).toEqual([{ start: 20, end: 20.001 }]);
  });

  it('page numbers that follow each other join nothing', () => {
    expect(proves(11, 40, evidenceOf([answer([10, 20]), answer([21, 40], { page: 2 })]))).toBe(false);
  });
});

describe('count: full pages from one side of an instant to the other show how many places it has', () => {
  const at = 20;
  const page = (number: number, shown: readonly Shown[], query: Partial<PageQuery> = {}, more = {}) =>
    answer(shown, { page: number, limit: 3, start: 0, ...query }, more);
  const pages = [page(1, [10, ...tie(at, 'a', 'b')]), page(2, tie(at, 'c', 'd', 'e')), page(3, [...tie(at, 'f'), 30])];

  it('suffices, and repeated rows take places without being rows', () => {
    expect(countOf(pages, at)).toMatchObject({ positions: 6, limit: 3, order: 'asc', isOpen: false });
    expect(countOf(pages, at)?.ids.size).toBe(6);
    const repeated = countOf(pages.with(1, page(2, tie(at, 'a', 'b', 'c'))), at);
    expect([repeated?.positions, repeated?.ids.size]).toEqual([6, 4]);
  });

  it('also from the other side', () => {
    const back = pages.map(({ query: { page: number } }, i) =>
      newest([[30, ...tie(at, 'a', 'b')], tie(at, 'c', 'd', 'e'), [...tie(at, 'f'), 10]][i] ?? [], {
        page: number,
        limit: 3,
      }),
    );
    expect(countOf(back, at)).toMatchObject({ positions: 6, order: 'desc' });
  });

  it('not pages with one left out, of other limits, or of another question', () => {
    expect(countOf(pages.toSpliced(1, 1), at)).toBeUndefined();
    for (const query of [{ limit: 4 }, { start: 1 }, { end: NOW }, { order: 'desc' as const }]) {
      expect(countOf(pages.with(2, page(3, [...tie(at, 'f'), 30], query)), at)).toBeUndefined();
    }
  });

  it('not where a page in between is not full: it was cut, or rows are hidden on it', () => {
    expect(countOf(pages.with(1, page(2, tie(at, 'c', 'd'))), at)).toBeUndefined();
    expect(countOf(pages.with(1, page(2, tie(at, 'c', 'd'), {}, { count: 3 })), at)).toBeUndefined();
    expect(countOf(pages.with(1, page(2, [])), at)).toBeUndefined();
  });

  it('not where an answer is out of order, strays included', () => {
    const strayed = page(2, [...tie(at, 'c', 'd', 'e'), 5], { limit: 4 });
    const first = page(1, [9, 10, ...tie(at, 'a', 'b')], { limit: 4 });
    expect(countOf([first, strayed, page(3, [...tie(at, 'f'), 30], { limit: 4 })], at)).toBeUndefined();
  });

  it('not from a page that may begin in the middle of the instant', () => {
    expect(countOf(pages.slice(1), at)).toBeUndefined();
    const from = (start: number) =>
      countOf([page(1, tie(at, 'a', 'b', 'c'), { start }), page(2, [...tie(at, 'd'), 30], { start })], at);
    expect(from(19)).toMatchObject({ positions: 4 });
    expect(from(20)).toBeUndefined();
  });

  it('newest first, not from an end that may cut the instant: times are shown in whole seconds', () => {
    const upTo = (end: number) =>
      countOf(
        [newest(tie(at, 'a', 'b'), { limit: 2, end }), newest([...tie(at, 'c'), 10], { page: 2, limit: 2, end })],
        at,
      );
    expect(upTo(at + 1000)).toMatchObject({ positions: 3 });
    expect(upTo(at + 999)).toBeUndefined();
  });

  it('where nothing shows behind it, a page that is not full ends it only if several behind it are empty', () => {
    const behind = Array.from({ length: EMPTY_BEHIND }, (_, i) => page(4 + i, []));
    const last = page(3, tie(at, 'f'));
    expect(countOf([...pages.slice(0, 2), last, ...behind], at)).toMatchObject({ positions: 6, isOpen: true });
    expect(countOf([...pages.slice(0, 2), last], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.slice(1)], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.with(1, page(5, tie(at, 'g')))], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.with(1, page(5, [], {}, { count: 1 }))], at)).toBeUndefined();
    expect(countOf(pages.slice(0, 2), at)).toBeUndefined();
  });

  it('an instant without a row has no count', () => {
    expect(countOf([page(1, [10, 30])], at)).toBeUndefined();
    expect(countOf([], at)).toBeUndefined();
  });
});

describe('ties: two passes with other page edges found as many rows as places, and the same ones', () => {
  const pass = (limit: number, ids: string, more: Partial<Count> = {}): Count => ({
    limit,
    order: 'asc',
    positions: 4,
    ids: new Set(ids),
    isOpen: false,
    answeredAt: NOW,
    ...more,
  });

  it('suffices', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abcd')], false)).toBe(true);
  });

  it('one pass does not, nor do two with the same limit: an order by page and limit repeats itself', () => {
    expect(allTiesSeen([pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([pass(3, 'abcd'), pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([], false)).toBe(false);
  });

  it('two equal passes with fewer rows than places do not', () => {
    expect(allTiesSeen([pass(3, 'abc'), pass(2, 'abc')], false)).toBe(false);
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abc')], false)).toBe(false);
  });

  it('passes of other rows do not', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abce')], false)).toBe(false);
  });

  it('where ties are shuffled, each group may take several passes, which share no limit', () => {
    expect(allTiesSeen([pass(5, 'abc'), pass(4, 'bcd'), pass(3, 'ab'), pass(7, 'cd')], false)).toBe(true);
    expect(allTiesSeen([pass(5, 'abc'), pass(4, 'bcd'), pass(5, 'ab'), pass(4, 'cd')], false)).toBe(false);
  });

  it('where the number of places changed, counting begins again', () => {
    const earlier = [pass(5, 'abcd'), pass(4, 'abcd', { positions: 3 })];
    expect(allTiesSeen([...earlier, pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([...earlier, pass(3, 'abcd'), pass(2, 'abcd')], false)).toBe(true);
  });

  it('more rows than places prove nothing: something moved', () => {
    expect(allTiesSeen([pass(3, 'abcde'), pass(2, 'abcde')], false)).toBe(false);
  });

  it('where nothing shows behind the instant, it is the last of all and the passes come from both sides', () => {
    const open = (limit: number, order: 'asc' | 'desc') => pass(limit, 'abcd', { order, isOpen: true });
    expect(allTiesSeen([open(3, 'asc'), open(2, 'desc')], true)).toBe(true);
    expect(allTiesSeen([open(3, 'asc'), open(2, 'desc')], false)).toBe(false);
    expect(allTiesSeen([open(3, 'asc'), open(2, 'asc')], true)).toBe(false);
  });

  it('the instant is closed, and what lies on both sides of it is one interval', () => {
    const evidence = evidenceOf([answer([10, ...tie(20, 'a')]), answer([...tie(20, 'b'), 30])]);
    expect(proves(11, 30, evidence)).toBe(false);
    expect(evidence.admitCount(20, pass(3, 'abcd'))).toBe(false);
    expect(evidence.admitCount(20, pass(2, 'abcd'))).toBe(true);
    expect(proves(11, 30, evidence)).toBe(true);
  });

  it('by itself it says nothing of what lies beside it', () => {
    const evidence = evidenceOf([answer([10, 15]), answer([25, 30])]);
    for (const limit of [3, 2]) evidence.admitCount(20, pass(limit, 'abcd'));
    expect(proves(11, 30, evidence)).toBe(false);
    expect(proves(19.5, 20.5, evidence)).toBe(false);
  });

  it('being the last of all is the evidence to say', () => {
    const open = (limit: number, order: 'asc' | 'desc') => pass(limit, 'abcd', { order, isOpen: true });
    const evidence = evidenceOf([answer([10, ...tie(20, 'a')])]);
    evidence.admitCount(20, open(3, 'asc'));
    expect(evidence.admitCount(20, open(2, 'desc'))).toBe(false);
  });

  // Every page edge of limit 3 is one of limit 1: a row before the instant that vanishes between the same two places of both passes, and
  // returns, makes both skip the same row.
  it('limits of which one divides the other have page edges in common', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(1, 'abcd')], false)).toBe(false);
  });
});

describe('unreadable: it failed alone, before and after its neighbours were read', () => {
  const alone = (place: number): PageQuery => answer([], { page: place + 1, limit: 1 }).query;
  const single = (place: number, shown: Shown) => answer([shown], { page: place + 1, limit: 1 });
  const page = answer([10, 20, 30, 40], { limit: 4 });
  // Place 4 cannot be read; what follows begins at place 5.
  const next = answer([60, 70, 80, 90, 100], { page: 2, limit: 5 });
  const tried: Unreadable = {
    before: [page, page],
    adjacent: [single(3, 40), single(5, 60)],
    failed: [[alone(4)], [alone(4)]],
    behind: [next],
    behindAgain: [next],
  };
  const isAround = (more: Partial<Unreadable>): boolean => aroundUnreadable({ ...tried, ...more }) !== undefined;

  it('suffices: the answers before and behind it are neighbours', () => {
    expect(aroundUnreadable(tried)).toEqual({ after: 10, before: 100 });
    const evidence = new Evidence({ settleMs: 0 });
    expect(evidence.admitUnreadable(tried)).toBe(true);
    expect(proves(11, 100, evidence)).toBe(true);
  });

  it('several in a row, if each failed alone', () => {
    const several = {
      adjacent: [single(3, 40), single(6, 60)] as const,
      behind: [answer([60, 70, 80], { page: 3, limit: 3 })],
    };
    const behindAgain = several.behind;
    const both = [alone(4), alone(5)];
    expect(isAround({ ...several, behindAgain, failed: [both, both] })).toBe(true);
    expect(isAround({ ...several, behindAgain, failed: [[alone(4)], [alone(4)]] })).toBe(false);
    expect(isAround({ ...several, behindAgain, failed: [both, [alone(4)]] })).toBe(false);
  });

  it('not a failure in company', () => {
    const company = { ...alone(4), page: 3, limit: 2 };
    expect(isAround({ failed: [[company], [company]] })).toBe(false);
    expect(isAround({ failed: [[{ ...company, page: 5 }], [{ ...company, page: 5 }]] })).toBe(false);
  });

  it('not a failure only before, only after, or of another place', () => {
    expect(isAround({ failed: [[alone(4)], []] })).toBe(false);
    expect(isAround({ failed: [[], [alone(4)]] })).toBe(false);
    expect(isAround({ failed: [[alone(3)], [alone(3)]] })).toBe(false);
    expect(isAround({ failed: [[alone(4)], [alone(5)]] })).toBe(false);
  });

  it('not where nothing failed', () => {
    expect(isAround({ failed: [[], []], adjacent: [single(3, 40), single(4, 60)] })).toBe(false);
  });

  it('not without its neighbours, each alone', () => {
    expect(isAround({ adjacent: [answer([], { page: 4, limit: 1 }), single(5, 60)] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 40), answer([], { page: 6, limit: 1 })] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 39), single(5, 60)] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 40), single(5, 61)] })).toBe(false);
  });

  it('not with a neighbour that was read in company: of the very row that is said to fail', () => {
    const five = answer([10, 20, 30, 40, 50], { limit: 5 });
    const behind = answer([70, 80], { page: 2, limit: 6 });
    const around = (left: Observation) =>
      aroundUnreadable({
        before: [five, five],
        adjacent: [left, single(6, 70)],
        failed: [[alone(5)], [alone(5)]],
        behind: [behind],
        behindAgain: [behind],
      });
    expect(around(single(4, 50))).toBeDefined();
    expect(around(answer([50, 60], { page: 3, limit: 2 }))).toBeUndefined();
  });

  it('not where something around it moved', () => {
    expect(isAround({ before: [page, answer([5, 10, 20, 30], { limit: 4 })] })).toBe(false);
    expect(isAround({ behindAgain: [answer([70, 80, 90, 100, 110], { page: 2, limit: 5 })] })).toBe(false);
  });

  it('not where the page before ends elsewhere, or the one behind begins elsewhere', () => {
    const shorter = answer([20, 30, 40], { limit: 3 });
    expect(isAround({ before: [shorter, shorter] })).toBe(false);
    const later = answer([60, 70, 80], { page: 3, limit: 3 });
    expect(isAround({ behind: [later], behindAgain: [later] })).toBe(false);
    const cut = answer([20, 30, 40], { limit: 4 });
    expect(isAround({ before: [cut, cut] })).toBe(false);
  });

  it('not with pages behind that do not follow on, are not full, or are missing', () => {
    const third = answer([110, 120], { page: 3, limit: 5 });
    expect(isAround({ behind: [next, third], behindAgain: [next, third] })).toBe(true);
    expect(isAround({ behind: [next, third] })).toBe(false);
    const far = { ...third, query: { ...third.query, page: 4 } };
    expect(isAround({ behind: [next, far], behindAgain: [next, far] })).toBe(false);
    const short = answer([60, 70], { page: 2, limit: 5 });
    expect(isAround({ behind: [short, third], behindAgain: [short] })).toBe(false);
    expect(isAround({ behind: [] })).toBe(false);
  });

  it('not with a row twice, or out of order', () => {
    const repeats = answer([60, 40, 70, 80, 90], { page: 2, limit: 5 });
    expect(isAround({ behind: [repeats], behindAgain: [repeats] })).toBe(false);
    const twice = answer([60, 70, 70, 80, 90], { page: 2, limit: 5 });
    expect(isAround({ behind: [twice], behindAgain: [twice] })).toBe(false);
    const reversed = answer([60, 55, 54, 53, 52], { page: 2, limit: 5 });
    expect(isAround({ behind: [reversed], behindAgain: [reversed] })).toBe(false);
  });

  // Places are places of one question: another start has other rows there.
  it('not a failure of another question', () => {
    const elsewhere = { ...alone(4), start: 35 };
    expect(isAround({ failed: [[elsewhere], [elsewhere]] })).toBe(false);
  });

  // 15 should have stood between 10 and 20: these pages are not parts of one sorted list.
  it('not with pages that are sorted by themselves and not together', () => {
    const back = answer([15, 70, 80, 90, 100], { page: 2, limit: 5 });
    expect(isAround({ adjacent: [single(3, 40), single(5, 15)], behind: [back], behindAgain: [back] })).toBe(false);
  });
});

describe('window: one unbroken interval begins before it and reaches its end', () => {
  const evidence = evidenceOf([answer([10, 20, 30]), answer([40, 50])]);

  it('suffices', () => {
    expect(prove({ start: 11, end: 30 }, evidence).proven).toMatchObject({ start: 11, end: 30 });
    expect(prove({ start: 10.001, end: 12 }, evidence).proven).toBeDefined();
  });

  it('says what is missing, first things first', () => {
    expect(prove({ start: 5, end: 60 }, evidence).gaps).toEqual([
      { start: 5, end: 10.001 },
      { start: 30, end: 40.001 },
      { start: 50, end: 60 },
    ]);
  });

  it('not where the interval begins at its first instant, or ends before its last', () => {
    expect(prove({ start: 10, end: 30 }, evidence).gaps).toEqual([{ start: 10, end: 10.001 }]);
    expect(prove({ start: 11, end: 30.001 }, evidence).gaps).toEqual([{ start: 30, end: 30.001 }]);
  });

  it('not two intervals with a hole between them', () => {
    expect(prove({ start: 11, end: 50 }, evidence).proven).toBeUndefined();
  });

  it('nothing by default', () => {
    expect(prove({ start: 0, end: 1 }, new Evidence({ settleMs: 0 })).gaps).toEqual([{ start: 0, end: 1 }]);
    expect(prove({ start: 1, end: 1 }, new Evidence({ settleMs: 0 })).proven).toBeUndefined();
  });

  it('what a copy of the evidence learns stays with the copy', () => {
    const copy = evidence.fork();
    copy.admit(answer([10, 20, 30, 40, 50]));
    expect([proves(11, 50, copy), proves(11, 50, evidence)]).toEqual([true, false]);
    // And it contradicts what the original has seen.
    expect(evidence.fork().admit(answer([10, 30])).kind).toBe('contradicts');
  });
});

describe('Certified is the word of the kernel alone', () => {
  const window = { start: 0, end: 10 };

  it('covers what it was made for, and nothing more', () => {
    const real = certified(window);
    expect(Certified.covers(real, window)).toBe(true);
    expect(Certified.covers(real, { start: 2, end: 5 })).toBe(true);
    expect(Certified.covers(real, { start: -1, end: 10 })).toBe(false);
    expect(Certified.covers(real, { start: 0, end: 11 })).toBe(false);
    expect(Certified.covers(undefined, window)).toBe(false);
  });

  it('is not what looks like it', () => {
    const real = certified(window);
    const forged = [
      { ...window, proven: true },
      { ...real },
      JSON.parse(JSON.stringify(real)),
      structuredClone(real),
      Object.assign(Object.create(Certified.prototype), window),
      Object.setPrototypeOf({ ...window }, real),
    ] as Certified[];
    for (const each of forged) expect(Certified.covers(each, window)).toBe(false);
  });

  it('joins neighbours only', () => {
    const [one, two] = [certified({ start: 0, end: 5 }), certified({ start: 5, end: 10 })];
    const joined = Certified.join(one, two);
    expect(Certified.covers(joined, window)).toBe(true);
    expect(Certified.join(one, certified({ start: 6, end: 10 }))).toBeUndefined();
    expect(Certified.join(two, one)).toBeUndefined();
  });

  it('is not made of what looks like it', () => {
    const forged = (start: number, end: number) => ({ start, end }) as unknown as Certified;
    expect(Certified.covers(Certified.join(forged(0, 5), forged(5, 10)), window)).toBe(false);
  });
});
