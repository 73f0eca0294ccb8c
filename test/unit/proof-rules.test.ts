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
 * The rules of evidence (docs/internals/extraction.md), one by one: what suffices, and what does not. Written from the contract.
 * An `it.fails` test shows a known way to fool the kernel: it turns red when that is fixed.
 */

const DAY = 86_400_000;
/** Long after everything below, so that all of it is settled. */
const NOW = 1000 * DAY;

type Shown = Stamped | number;

/** A row at a time, with an id made from it. */
const row = (shown: Shown): Stamped => (typeof shown === 'number' ? { id: `r${shown}`, at: shown } : shown);
const tie = (at: number, ...names: string[]): Stamped[] => names.map((id) => ({ id, at }));

/** An answer, by default the first page from 0 to beyond the present, oldest first, with a limit of ten rows. */
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
  it('is read oldest first, whichever order was asked for', () => {
    expect(timesOf(inOrder(answer([1, 2, 2, 3])))).toEqual([1, 2, 2, 3]);
    expect(timesOf(inOrder(newest([3, 2, 2, 1])))).toEqual([1, 2, 2, 3]);
  });

  it('leaves out a few single strays, which prove nothing', () => {
    expect(timesOf(inOrder(answer([10, 20, 5, 30])))).toEqual([10, 20, 30]);
    const rows = Array.from({ length: 100 }, (_, i) => 1000 + i);
    const two = rows.with(30, 7).with(60, 9);
    expect(inOrder(answer(two, { limit: 100 }))).toHaveLength(98);
    expect(inOrder(answer(two.with(80, 11), { limit: 100 }))).toBeUndefined();
  });

  it('rejects a reversed answer', () => {
    expect(inOrder(answer([3, 2, 1]))).toBeUndefined();
    expect(inOrder(newest([1, 2, 3]))).toBeUndefined();
    expect(inOrder(answer([2, 1]))).toBeUndefined();
  });

  it('rejects a mixed answer', () => {
    expect(inOrder(answer([1, 5, 2, 6, 3, 7]))).toBeUndefined();
    expect(inOrder(answer([2, 1, 3]))).toBeUndefined();
    expect(inOrder(answer([4, 1, 2, 3, 0]))).toBeUndefined();
  });

  it('rejects a reversed page of ties, which is not one stray', () => {
    expect(inOrder(answer([2, 1, 1, 1]))).toBeUndefined();
    expect(inOrder(answer([2, 2, 2, 1]))).toBeUndefined();
  });

  it('rejects a later page with more rows than were asked for', () => {
    expect(inOrder(answer([1, 2, 3], { limit: 3 }))).toHaveLength(3);
    expect(inOrder(answer([1, 2, 3, 4], { limit: 3, page: 2 }))).toBeUndefined();
    expect(timesOf(inOrder(answer([1, 2, 3, 90], { limit: 3 })))).toEqual([1, 2, 3]);
    expect(timesOf(inOrder(newest([90, 80, 2, 1], { limit: 3 })))).toEqual([2, 80, 90]);
  });

  it('takes no evidence from such an answer', () => {
    const evidence = evidenceOf([answer([3, 2, 1])]);
    expect(evidence.admit(answer([9, 8, 7]))).toEqual({ kind: 'unordered' });
    expect(evidence.around(2)).toBeUndefined();
  });

  it('once ignored, is not shown by rows of a single instant', () => {
    const evidence = evidenceOf([answer([9, 8, 7])]);
    expect(evidence.admit(answer([8]))).toEqual({ kind: 'unordered' });
    expect(evidence.admit(newest([8]))).toMatchObject({ kind: 'counts' });
    expect(evidence.admit(answer([7, 8]))).toMatchObject({ kind: 'counts' });
    expect(evidence.admit(answer([]))).toEqual({ kind: 'empty' });
  });

  it('leaves out one time that lies years outside of the range of a short page, and rejects two', () => {
    const question = { start: 900 * DAY, end: 901 * DAY };
    expect(timesOf(inOrder(answer([900 * DAY + 5, DAY], question)))).toEqual([900 * DAY + 5]);
    expect(inOrder(answer([900 * DAY + 5, 2 * DAY, DAY], question))).toBeUndefined();
  });
});

describe('reach: rows that no widening explains are left out', () => {
  const asked = { start: 100 * DAY, end: 101 * DAY };
  const rows = [100 * DAY + 1, 100 * DAY + 2, 100 * DAY + 3];

  it('includes widened bounds: whole days on both sides, in any zone', () => {
    const widened = [99 * DAY, 99.5 * DAY, ...rows, 101.5 * DAY, 102 * DAY];
    expect(timesOf(inOrder(answer(widened, asked)))).toEqual(widened);
  });

  it('excludes a garbled time at the edge of a page, although in order', () => {
    expect(timesOf(inOrder(answer([0, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 500 * DAY], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([100 * DAY - WIDENED_MS - 1, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 101 * DAY + WIDENED_MS + 1], asked)))).toEqual(rows);
  });

  it('excludes several', () => {
    expect(timesOf(inOrder(answer([0, 1, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 500 * DAY, 501 * DAY], asked)))).toEqual(rows);
  });

  it('excludes a single row close by: a widening shows more than one', () => {
    expect(timesOf(inOrder(answer([99 * DAY, ...rows], asked)))).toEqual(rows);
    expect(timesOf(inOrder(answer([...rows, 102 * DAY], asked)))).toEqual(rows);
  });

  it('prevents proof of the time up to an excluded row', () => {
    const evidence = evidenceOf([answer([0, ...rows, 500 * DAY], asked)]);
    expect(evidence.around(50 * DAY)).toBeUndefined();
    expect(evidence.around(400 * DAY)).toBeUndefined();
    expect(evidence.around(100 * DAY + 2)).toBeDefined();
  });

  it('does not apply to a service that ignores bounds', () => {
    expect(timesOf(inOrder(answer([1, 2, 3], asked)))).toEqual([1, 2, 3]);
  });

  // Only rows far outside of the range, on both sides: two garbled times would otherwise prove everything between them.
  it('rejects an answer whose rows all lie outside of the range, on both sides', () => {
    for (const newer of [400 * DAY, 500 * DAY])
      expect(evidenceOf([answer([0, newer], asked)]).around(300 * DAY)).toBeUndefined();
  });
});

describe('between: every row strictly between the edges of an answer is on it', () => {
  it('proves the time from its oldest to its newest row', () => {
    expect(provenBy([1, 2, 5].map(row))).toEqual({ after: 1, before: 5 });
    expect(proves(2, 5, evidenceOf([answer([1, 2, 5])]))).toBe(true);
  });

  it('starts at the start of the query if the oldest row is shown in whole seconds', () => {
    const evidence = evidenceOf([answer([7000, 8000], { start: 7510 })]);
    expect([proves(7001, 8000, evidence), proves(7511, 8000, evidence)]).toEqual([false, true]);
  });

  it('excludes the instants of the edges: more rows may share them', () => {
    const evidence = evidenceOf([answer([1, 2, 5])]);
    expect(proves(1, 5, evidence)).toBe(false);
    expect(proves(2, 5.001, evidence)).toBe(false);
  });

  it('proves nothing by a page of one instant, of one row, or without rows', () => {
    expect(provenBy(tie(3, 'a', 'b'))).toBeUndefined();
    expect(provenBy([row(3)])).toBeUndefined();
    expect(provenBy([])).toBeUndefined();
  });

  it('proves nothing more by the asked bounds, a page that is not full, or an empty page', () => {
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

describe('end: the newest rows first, up to the present, confirmed by another query, and the time since is covered', () => {
  const rows = [NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - HOUR];
  const candidate = newest(rows.toReversed(), { start: NOW - 30 * DAY, end: END, limit: 100 });
  const again = answer(rows.slice(-2), { start: NOW - 2 * HOUR - 1, end: END, limit: 50 });
  /** Ends right after a row that it shows: ends are kept. */
  const kept = newest([NOW - 4 * HOUR], { start: NOW - 5 * HOUR, end: NOW - 4 * HOUR + 1000 });
  const ends = (answers: readonly Observation[], known: Partial<Prior> = {}, before: Observation[] = [kept]): boolean =>
    proves(NOW - 2 * HOUR, NOW, evidenceOf([...before, ...answers], known));
  const proven = { newestSeen: NOW - HOUR, isProven: true };

  it('is proven so on a new stream, and by a page with known rows on a proven stream', () => {
    expect([ends([candidate, again]), ends([again, candidate]), ends([candidate], proven)]).toEqual([true, true, true]);
  });

  it('is not proven by the page alone on a new stream', () => expect(ends([candidate])).toBe(false));

  it('is not proven by another page or order, or by an end before the present', () => {
    for (const query of [{ page: 2 }, { order: 'asc' as const }, { end: NOW - HOUR }]) {
      const other = {
        ...candidate,
        query: { ...candidate.query, ...query },
        rows: query.order ? rows.map(row) : candidate.rows,
      };
      expect(ends([other], { ...proven, keepsEnds: true }), JSON.stringify(query)).toBe(false);
    }
  });

  it('requires a query that ends right after a row and shows it, in this or an earlier run', () => {
    const both = [candidate, again];
    const right = newest(rows.toReversed(), { start: NOW - DAY, end: NOW - HOUR + 1000 });
    const cut = newest(rows.slice(0, 2).toReversed(), { start: NOW - DAY, end: NOW - HOUR + 1000 });
    // An end rounded down to the minute still shows this row.
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

  it('admits a query that ends later if that much is unsettled and in the same hour', () => {
    const isKept = (at: number, after: number, settleMs: number): boolean =>
      evidenceOf([newest([at], { start: at - HOUR, end: at + after })], { settleMs }).ends.areKept;
    const at = NOW - 3 * HOUR;
    expect([isKept(at, MINUTE, 0), isKept(at, MINUTE, MINUTE), isKept(at, MINUTE, 2 * MINUTE)]).toEqual([
      ...[false, false, true],
    ]);
    expect([isKept(at, 2 * MINUTE + 1, 9 * MINUTE), isKept(at - 1, MINUTE, 9 * MINUTE)]).toEqual([false, false]);
  });

  it('admits a query to the present that hides settled rows shown by one that ends far ahead', () => {
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
    // Slightly ahead of the service's clock is not far enough.
    const ahead = (ms: number): Observation => ({ ...candidate, query: { ...candidate.query, end: NOW + ms } });
    expect([FAR_AHEAD_MS - 1, FAR_AHEAD_MS].map((ms) => reaches([NOW - 2 * HOUR], {}, ahead(ms)))).toEqual([
      ...[false, true],
    ]);
  });

  it('otherwise reaches as far back as ends may be shifted, or to the newest row', () => {
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
    // What another reading of the run learns of ends counts, too.
    const other = evidence.fork();
    evidence.admit(kept);
    other.admitEnd();
    expect(other.shownThrough).toBe(Number.POSITIVE_INFINITY);
  });

  it('is not proven by an end before the present, not even before that: ends are rounded down', () => {
    const early = { ...candidate, query: { ...candidate.query, end: NOW - HOUR / 2 } };
    expect(proves(NOW - 2 * HOUR, NOW - HOUR + 5, evidenceOf([early], { ...proven, keepsEnds: true }))).toBe(false);
  });

  it('after a newer row of an earlier run requires a short query that shows that it is gone', () => {
    const known = { ...proven, newestSeen: NOW - HOUR + 1000 };
    const from = (start: number): Observation => answer(rows.slice(-1), { start, end: END, limit: 50 });
    const long = from(NOW - NARROW_MS - HOUR);
    expect(ends([candidate, long], known)).toBe(false);
    expect(ends([candidate, long, from(NOW - HOUR - 1)], known)).toBe(true);
    // Gone, but no other query shows the row that would then be the newest.
    expect(ends([candidate, answer([], { start: NOW - HOUR + 500, end: END, limit: 50 })], known)).toBe(false);
    // It shows again, so conclusions without it are void.
    const back = answer([known.newestSeen], { start: NOW - HOUR + 500, end: END, limit: 50 });
    expect(ends([candidate, long, from(NOW - HOUR - 1), back, candidate, from(NOW - HOUR - 2)], known)).toBe(false);
  });

  it('is not proven if a newer row is known, before or after the page', () => {
    expect(ends([candidate], { ...proven, newestSeen: NOW - HOUR + 1 })).toBe(false);
    const newer = answer([NOW - HOUR + 5], { start: NOW - HOUR + 1, end: END });
    expect([ends([newer, candidate], proven), ends([candidate, newer, again])]).toEqual([false, false]);
  });

  it('needs another query with another limit, oldest first, near that row, up to the present, with that row as its newest', () => {
    const changed = (query: Partial<PageQuery>, shown: readonly number[] = rows.slice(-2)): boolean =>
      ends([candidate, answer(shown, { ...again.query, ...query })]);
    expect(changed({ limit: 80 })).toBe(false);
    expect(changed({ start: NOW - 20 * DAY })).toBe(false);
    expect(changed({ end: NOW - HOUR + 1 })).toBe(false);
    expect(changed({}, [NOW - 2 * HOUR])).toBe(false);
    expect(changed({ limit: 2 })).toBe(false);
  });

  it('needs newest first only if oldest first does not reach that row, and from another start', () => {
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
    /** As long as the range that the page filled, and the latest hours separately. */
    const pieces = [0, 1, 2, 3, 4].map((i) => piece(at + 2 * i * DAY, at + 2 * (i + 1) * DAY, i === 0 ? [at] : []));
    const latest = piece(NOW - 5 * HOUR, END);
    const quiet = (answers: readonly Observation[], more: Partial<Prior> = {}): boolean =>
      proves(at - DAY, NOW, evidenceOf([old, ...answers], { ...known, keepsEnds: true, ...more }));

    it('is proven by short queries without a hole', () => {
      expect(quiet([...pieces, latest])).toBe(true);
      expect(quiet(pieces.toSpliced(2, 1, latest))).toBe(false);
    });

    it('is not proven by longer ones, which may be cut silently', () => {
      expect(quiet([piece(at, NOW - DAY, [at]), piece(NOW - 2 * DAY, END), latest])).toBe(false);
    });

    it('needs the latest hours separately: recent rows may be stored elsewhere', () =>
      expect(quiet(pieces)).toBe(false));

    it('is not proven by an empty page of one row, which may be hidden', () => {
      const single = pieces.map((each, i) => (i === 0 ? each : { ...each, query: { ...each.query, limit: 1 } }));
      expect(quiet([...single, latest])).toBe(false);
    });

    it('with rows of one instant that fill the page needs a query from right after them, or a later page that proves the order', () => {
      const full = (query: Partial<PageQuery>): Observation =>
        newest(tie(at, 'a', 'b'), { start: at - HOUR, end: at + DAY, limit: 2, ...query });
      const others = [piece(at + DAY, at + 2 * DAY), ...pieces.slice(1), latest];
      const behind = (ms: number): Observation => piece(at + ms, at + 2 * DAY);
      expect([quiet([full({}), ...others]), quiet([full({}), full({ page: 2 }), ...others])]).toEqual([false, false]);
      const older = newest([row({ id: 'c', at }), at - HOUR / 2], full({ page: 2 }).query);
      expect(quiet([full({}), older, ...others])).toBe(true);
      expect([quiet([behind(1000), ...others]), quiet([behind(1001), ...others])]).toEqual([true, false]);
    });

    it('admits a query of the latest hours from up to an hour before', () => {
      const earlier = (ms: number): Observation => ({ ...piece(NOW - ms - 5 * HOUR, END), answeredAt: NOW - ms });
      expect([quiet([...pieces, earlier(HOUR)]), quiet([...pieces, earlier(HOUR + 1)])]).toEqual([true, false]);
    });

    it('needs no query of what was covered up to an hour ago', () => {
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

  it('is proven so', () => expect(begins([long, beside, far])).toBe(true));

  it('needs the long query, the short one beside the row, and the far side separately', () => {
    expect([begins([beside, far]), begins([long, far]), begins([long, beside])]).toEqual([false, false, false]);
  });

  it('needs a long query from further back than any rounding explains, or from the founding of the service', () => {
    const near = { ...long, query: { ...long.query, start: edge - DAY } };
    expect([begins([near, beside, far]), begins([near, beside, far], { founded: edge - DAY })]).toEqual([false, true]);
  });

  it('is not proven with a hole, the same page size, another first row, or after an older row was seen', () => {
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

  it('is not proven by a long query that lacks a known row in its range, wherever it is', () => {
    const before = answer([edge - 10 * DAY], { start: edge - 10 * DAY - 1, end: edge - 9 * DAY });
    const unordered = answer([edge + 2 * HOUR, edge + HOUR], { start: edge, end: edge + DAY });
    expect([begins([long, beside, far, before]), begins([long, beside, far, unordered])]).toEqual([false, false]);
  });

  it('is not proven by a short query that is longer than any range that was filled with rows', () => {
    const few = answer([first, first + HOUR], { ...long.query });
    const wide = { ...beside, query: { ...beside.query, start: edge - 1 } };
    const evidence = evidenceOf([few, wide, far]);
    evidence.admitBeginning(edge);
    expect(proves(edge, first, evidence)).toBe(false);
  });
});

describe('nothing: no query, long or short, shows a row at two polls', () => {
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

  it('is proven if an earlier poll found the same', () => expect(isEmpty([...longs, ...pieces])).toBe(true));

  it('is not proven at the first poll, however many queries it makes', () =>
    expect(isEmpty([...longs, ...longs, ...pieces], {})).toBe(false));

  it('is not proven if any query is missing', () => {
    const all = [...longs, ...pieces];
    for (const i of [0, 1, 2, 3]) expect(isEmpty(all.toSpliced(i, 1)), `${i}`).toBe(false);
  });

  it('is not proven if any answer shows a record, readable or not, or a row was ever seen', () => {
    const unread = { ...asked({ start: NOW - HOUR, end: END }), count: 1 };
    expect(isEmpty([...longs, ...pieces, unread])).toBe(false);
    expect(isEmpty([...longs, ...pieces], { empty: [window], newestSeen: 5 })).toBe(false);
  });
});

describe('cover: where long ranges are refused, short overlapping queries show nothing between two rows', () => {
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

  it('needs queries that start at a shown row and overlap by more than bounds are rounded', () => {
    expect(isSilent(first, ...overlapping)).toBe(true);
    expect(isSilent(first, range(3.5 * HOUR, 4.5 * HOUR), range(4.5 * HOUR, to + 1, [to]))).toBe(false);
  });

  it('reaches the present only if ends are known to be kept', () => {
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

  it('takes nothing from an answer that lacks a known row: its end may be rounded down', () => {
    expect(isSilent(range(from, from + 1.5 * HOUR), ...overlapping)).toBe(false);
    const other = range(4 * HOUR, 5.5 * HOUR, [5.3 * HOUR]);
    expect(isSilent(first, range(3 * HOUR, 4.5 * HOUR), other)).toBe(false);
  });
});

describe('stream: an answer with rows of another stream', () => {
  it('proves nothing', () => {
    expect(evidenceOf([answer([1, 2, 3])]).through(2)).toBe(3);
    expect(evidenceOf([answer([1, 2, 3], {}, { foreign: 1 })]).through(2)).toBeUndefined();
  });
});

describe('whole: a long query that lacks what a short one shows', () => {
  const rows = Array.from({ length: 10 }, (_, i) => NOW - DAY + i * HOUR);
  const sampled = answer([NOW - 20 * DAY, ...rows.filter((_, i) => i % 3 === 0)], {
    start: NOW - 30 * DAY,
    end: END,
    limit: 100,
  });
  const short = answer(rows, { start: NOW - DAY, end: END, limit: 100 });

  it('loses its proof', () => {
    expect(evidenceOf([sampled]).through(NOW - 10 * DAY)).toBeDefined();
    expect(evidenceOf([sampled, short]).through(NOW - 10 * DAY)).toBeUndefined();
  });

  it('loses its proof also by a short one that is out of order', () => {
    const mixed = { ...short, rows: [...short.rows.slice(5), ...short.rows.slice(0, 5)] };
    expect(inOrder(mixed)).toBeUndefined();
    expect(evidenceOf([sampled, mixed]).through(NOW - 10 * DAY)).toBeUndefined();
  });

  it('does not prove those rows gone by later ones', () => {
    const later = [1, 2, 3].map((i) => ({ ...sampled, query: { ...sampled.query, start: NOW - 30 * DAY - i } }));
    const evidence = evidenceOf([short, ...later]);
    expect(evidence.through(NOW - 10 * DAY)).toBeUndefined();
    expect(evidence.wholeMs()).toBeLessThanOrEqual(DAY);
  });

  describe('answers of similar length', () => {
    const pages = Array.from({ length: 100 }, (_, i) => NOW - DAY + i * MINUTE);
    const without = (...left: number[]): number[] => pages.filter((_, i) => !left.includes(i));
    const all = answer(pages, { start: NOW - DAY - HOUR, end: END, limit: 1000 });
    const other = (shown: readonly number[], more: Partial<Observation> = {}): Observation =>
      answer(shown, { start: NOW - DAY - 2 * HOUR, end: END, limit: 500 }, more);
    const contradict = (...answers: Observation[]): boolean => evidenceOf(answers).isContradicted;
    const oneInEight = Array.from({ length: 12 }, (_, i) => 4 + 8 * i);

    it('contradict each other, in either order, if one lacks rows that both should show inside', () => {
      const some = other(without(...oneInEight));
      expect([contradict(all, some), contradict(some, all)]).toEqual([true, true]);
      expect([contradict(all, other(pages)), contradict(all, other(pages.slice(30, 60)))]).toEqual([false, false]);
    });

    it('do not contradict by single rows of many, at their edges, or by rows that may have arrived since', () => {
      expect(contradict(all, other(without(20, 40, 60)))).toBe(false);
      expect(contradict(all, other(pages.slice(10, 90)))).toBe(false);
      // An answer may lack any rows of the hour before it.
      const early = (...left: number[]) => other(without(...left), { answeredAt: NOW - DAY + 100 * MINUTE });
      const late = { ...all, answeredAt: NOW };
      expect([contradict(early(5, 10, 15, 20, 25), late), contradict(early(60, 70, 80, 90), late)]).toEqual([
        true,
        false,
      ]);
    });

    it('contradict each other in a copy of the evidence too', () => {
      expect(evidenceOf([all, other(without(...oneInEight))]).fork().isContradicted).toBe(true);
      const copy = evidenceOf([all]).fork();
      copy.admit(other(without(...oneInEight)));
      expect(copy.isContradicted).toBe(true);
    });
  });
});

describe('agreement: rows seen before between the edges of an answer', () => {
  const first = answer([10, 20, 30]);

  it('are shown again by an answer that counts', () => {
    expect(evidenceOf([first]).admit(answer([5, 10, 20, 30, 40])).kind).toBe('counts');
  });

  it('make an answer without them no evidence', () => {
    const evidence = evidenceOf([first]);
    const contradiction = answer([5, 10, 30, 40]);
    expect(evidence.admit(contradiction)).toEqual({ kind: 'contradicts', missing: [row(20)] });
    expect(evidence.around(35)).toBeUndefined();
    // The same query again is not another query.
    expect(evidence.admit(contradiction).kind).toBe('contradicts');
    expect(evidence.around(35)).toBeUndefined();
  });

  it('are gone if another query lacks them too', () => {
    const evidence = evidenceOf([first, answer([5, 10, 30, 40])]);
    expect(evidence.admit(answer([5, 10, 30, 40], { start: 1 })).kind).toBe('counts');
    expect(evidence.around(35)).toBeDefined();
  });

  it('are not gone if the two answers show different rows beside them: one may come from elsewhere', () => {
    const evidence = evidenceOf([answer([100, 110]), newest([300, 200, 5])]);
    expect(evidence.admit(newest([300, 200, 6], { start: 1 })).kind).toBe('contradicts');
    expect(evidence.around(150)).toBeUndefined();
    expect(evidence.admit(newest([300, 200, 6], { start: 2 })).kind).toBe('counts');
  });

  it('are known again once shown in between', () => {
    const evidence = evidenceOf([first, answer([5, 10, 30, 40]), answer([10, 20, 30])]);
    expect(evidence.admit(answer([5, 10, 30, 40], { start: 1 })).kind).toBe('contradicts');
  });

  it('exclude the edges: nothing is claimed of their instants', () => {
    expect(evidenceOf([first]).admit(answer([{ id: 'other', at: 10 }, 20, { id: 'another', at: 30 }])).kind).toBe(
      'counts',
    );
  });

  it('include the edges of long pages', () => {
    const rows = Array.from({ length: 100 }, (_, i) => 1000 + i);
    const long = answer(rows, { limit: 100 });
    const without = (at: number) => answer([900, ...rows.filter((each) => each !== at), 1200], { limit: 200 });
    expect(evidenceOf([long]).admit(without(1000)).kind).toBe('contradicts');
    expect(evidenceOf([long]).admit(without(1099)).kind).toBe('contradicts');
  });
});

describe('settled: an answer proves nothing younger than its clock less the settle time', () => {
  const rows = [10, 20, 30, 40];

  it('proves up to the settle time', () => {
    const evidence = evidenceOf([answer(rows, {}, { answeredAt: 40 })], { settleMs: 15 });
    expect(proves(11, 25, evidence)).toBe(true);
    expect(proves(11, 26, evidence)).toBe(false);
    expect(evidence.settledThrough).toBe(25);
  });

  it('proves nothing if all rows are younger', () => {
    const evidence = evidenceOf([answer(rows, {}, { answeredAt: 40 })], { settleMs: 30 });
    expect(evidence.around(11)).toBeUndefined();
  });

  it('applies to the newest page too', () => {
    const page = newest([40, 30, 20], { start: NOW - 1, end: END });
    const evidence = evidenceOf([page], { settleMs: 100, newestSeen: 40, isProven: true, keepsEnds: true });
    expect(proves(21, NOW - 100, evidence)).toBe(true);
    expect(proves(21, NOW - 99, evidence)).toBe(false);
  });

  // Counted before it was settled; a later answer ends there. A row that arrived in between is missing from both.
  it('applies to counted ties too', () => {
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

describe('overlap: intervals join if their insides overlap', () => {
  it('joins overlapping answers', () => {
    const evidence = evidenceOf([answer([10, 20, 30]), answer([20, 30, 40])]);
    expect(proves(11, 40, evidence)).toBe(true);
  });

  it('joins what lies between', () => {
    const evidence = evidenceOf([answer([10, 20]), answer([30, 40]), answer([15, 20, 30, 35])]);
    expect(evidence.around(12)).toEqual({ after: 10, before: 40 });
  });

  it('leaves the instant between touching pages open', () => {
    const evidence = evidenceOf([answer([10, 20]), answer([20, 30], { page: 2 })]);
    expect(proves(11, 30, evidence)).toBe(false);
    expect(prove({ start: 11, end: 30 }, evidence).gaps).toEqual([{ start: 20, end: 20.001 }]);
  });

  it('does not join by consecutive page numbers', () => {
    expect(proves(11, 40, evidenceOf([answer([10, 20]), answer([21, 40], { page: 2 })]))).toBe(false);
  });
});

describe('count: full pages from one side of an instant to the other show how many positions it has', () => {
  const at = 20;
  const page = (number: number, shown: readonly Shown[], query: Partial<PageQuery> = {}, more = {}) =>
    answer(shown, { page: number, limit: 3, start: 0, ...query }, more);
  const pages = [page(1, [10, ...tie(at, 'a', 'b')]), page(2, tie(at, 'c', 'd', 'e')), page(3, [...tie(at, 'f'), 30])];

  it('counts repeated rows as positions, not as rows', () => {
    expect(countOf(pages, at)).toMatchObject({ positions: 6, limit: 3, order: 'asc', isOpen: false });
    expect(countOf(pages, at)?.ids.size).toBe(6);
    const repeated = countOf(pages.with(1, page(2, tie(at, 'a', 'b', 'c'))), at);
    expect([repeated?.positions, repeated?.ids.size]).toEqual([6, 4]);
  });

  it('works from the other side too', () => {
    const back = pages.map(({ query: { page: number } }, i) =>
      newest([[30, ...tie(at, 'a', 'b')], tie(at, 'c', 'd', 'e'), [...tie(at, 'f'), 10]][i] ?? [], {
        page: number,
        limit: 3,
      }),
    );
    expect(countOf(back, at)).toMatchObject({ positions: 6, order: 'desc' });
  });

  it('excludes pages with one left out, of other limits, or of another query', () => {
    expect(countOf(pages.toSpliced(1, 1), at)).toBeUndefined();
    for (const query of [{ limit: 4 }, { start: 1 }, { end: NOW }, { order: 'desc' as const }]) {
      expect(countOf(pages.with(2, page(3, [...tie(at, 'f'), 30], query)), at)).toBeUndefined();
    }
  });

  it('excludes a partly filled page in between: it was cut, or hides rows', () => {
    expect(countOf(pages.with(1, page(2, tie(at, 'c', 'd'))), at)).toBeUndefined();
    expect(countOf(pages.with(1, page(2, tie(at, 'c', 'd'), {}, { count: 3 })), at)).toBeUndefined();
    expect(countOf(pages.with(1, page(2, [])), at)).toBeUndefined();
  });

  it('excludes answers out of order, with strays included', () => {
    const strayed = page(2, [...tie(at, 'c', 'd', 'e'), 5], { limit: 4 });
    const first = page(1, [9, 10, ...tie(at, 'a', 'b')], { limit: 4 });
    expect(countOf([first, strayed, page(3, [...tie(at, 'f'), 30], { limit: 4 })], at)).toBeUndefined();
  });

  it('excludes a page that may start inside the instant', () => {
    expect(countOf(pages.slice(1), at)).toBeUndefined();
    const from = (start: number) =>
      countOf([page(1, tie(at, 'a', 'b', 'c'), { start }), page(2, [...tie(at, 'd'), 30], { start })], at);
    expect(from(19)).toMatchObject({ positions: 4 });
    expect(from(20)).toBeUndefined();
  });

  it('excludes newest first from an end that may cut the instant: times are shown in whole seconds', () => {
    const upTo = (end: number) =>
      countOf(
        [newest(tie(at, 'a', 'b'), { limit: 2, end }), newest([...tie(at, 'c'), 10], { page: 2, limit: 2, end })],
        at,
      );
    expect(upTo(at + 1000)).toMatchObject({ positions: 3 });
    expect(upTo(at + 999)).toBeUndefined();
  });

  it('at the end of the stream needs several empty pages after a partly filled one', () => {
    const behind = Array.from({ length: EMPTY_BEHIND }, (_, i) => page(4 + i, []));
    const last = page(3, tie(at, 'f'));
    expect(countOf([...pages.slice(0, 2), last, ...behind], at)).toMatchObject({ positions: 6, isOpen: true });
    expect(countOf([...pages.slice(0, 2), last], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.slice(1)], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.with(1, page(5, tie(at, 'g')))], at)).toBeUndefined();
    expect(countOf([...pages.slice(0, 2), last, ...behind.with(1, page(5, [], {}, { count: 1 }))], at)).toBeUndefined();
    expect(countOf(pages.slice(0, 2), at)).toBeUndefined();
  });

  it('is undefined for an instant without rows', () => {
    expect(countOf([page(1, [10, 30])], at)).toBeUndefined();
    expect(countOf([], at)).toBeUndefined();
  });
});

describe('ties: two passes with other page edges found as many rows as positions, and the same ones', () => {
  const pass = (limit: number, ids: string, more: Partial<Count> = {}): Count => ({
    limit,
    order: 'asc',
    positions: 4,
    ids: new Set(ids),
    isOpen: false,
    answeredAt: NOW,
    ...more,
  });

  it('are proven so', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abcd')], false)).toBe(true);
  });

  it('are not proven by one pass, or by two with the same limit: an order by page and limit repeats itself', () => {
    expect(allTiesSeen([pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([pass(3, 'abcd'), pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([], false)).toBe(false);
  });

  it('are not proven by two equal passes with fewer rows than positions', () => {
    expect(allTiesSeen([pass(3, 'abc'), pass(2, 'abc')], false)).toBe(false);
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abc')], false)).toBe(false);
  });

  it('are not proven by passes with different rows', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(2, 'abce')], false)).toBe(false);
  });

  it('if shuffled, may take several passes in each group, which share no limit', () => {
    expect(allTiesSeen([pass(5, 'abc'), pass(4, 'bcd'), pass(3, 'ab'), pass(7, 'cd')], false)).toBe(true);
    expect(allTiesSeen([pass(5, 'abc'), pass(4, 'bcd'), pass(5, 'ab'), pass(4, 'cd')], false)).toBe(false);
  });

  it('are counted anew after the number of positions changed', () => {
    const earlier = [pass(5, 'abcd'), pass(4, 'abcd', { positions: 3 })];
    expect(allTiesSeen([...earlier, pass(3, 'abcd')], false)).toBe(false);
    expect(allTiesSeen([...earlier, pass(3, 'abcd'), pass(2, 'abcd')], false)).toBe(true);
  });

  it('are not proven by more rows than positions: something moved', () => {
    expect(allTiesSeen([pass(3, 'abcde'), pass(2, 'abcde')], false)).toBe(false);
  });

  it('at the end of the stream need passes from both sides', () => {
    const open = (limit: number, order: 'asc' | 'desc') => pass(limit, 'abcd', { order, isOpen: true });
    expect(allTiesSeen([open(3, 'asc'), open(2, 'desc')], true)).toBe(true);
    expect(allTiesSeen([open(3, 'asc'), open(2, 'desc')], false)).toBe(false);
    expect(allTiesSeen([open(3, 'asc'), open(2, 'asc')], true)).toBe(false);
  });

  it('close the instant, and join both sides of it into one interval', () => {
    const evidence = evidenceOf([answer([10, ...tie(20, 'a')]), answer([...tie(20, 'b'), 30])]);
    expect(proves(11, 30, evidence)).toBe(false);
    expect(evidence.admitCount(20, pass(3, 'abcd'))).toBe(false);
    expect(evidence.admitCount(20, pass(2, 'abcd'))).toBe(true);
    expect(proves(11, 30, evidence)).toBe(true);
  });

  it('alone prove nothing beside it', () => {
    const evidence = evidenceOf([answer([10, 15]), answer([25, 30])]);
    for (const limit of [3, 2]) evidence.admitCount(20, pass(limit, 'abcd'));
    expect(proves(11, 30, evidence)).toBe(false);
    expect(proves(19.5, 20.5, evidence)).toBe(false);
  });

  it('are last only if the evidence shows it', () => {
    const open = (limit: number, order: 'asc' | 'desc') => pass(limit, 'abcd', { order, isOpen: true });
    const evidence = evidenceOf([answer([10, ...tie(20, 'a')])]);
    evidence.admitCount(20, open(3, 'asc'));
    expect(evidence.admitCount(20, open(2, 'desc'))).toBe(false);
  });

  // Every page edge of limit 3 is one of limit 1: a row before the instant that disappears between the same two positions
  // of both passes, and returns, makes both skip the same row.
  it('are not proven by limits of which one divides the other: they share page edges', () => {
    expect(allTiesSeen([pass(3, 'abcd'), pass(1, 'abcd')], false)).toBe(false);
  });
});

describe('unreadable: it failed alone, before and after its neighbours were read', () => {
  const alone = (place: number): PageQuery => answer([], { page: place + 1, limit: 1 }).query;
  const single = (place: number, shown: Shown) => answer([shown], { page: place + 1, limit: 1 });
  const page = answer([10, 20, 30, 40], { limit: 4 });
  // Position 4 is unreadable; the next page starts at position 5.
  const next = answer([60, 70, 80, 90, 100], { page: 2, limit: 5 });
  const tried: Unreadable = {
    before: [page, page],
    adjacent: [single(3, 40), single(5, 60)],
    failed: [[alone(4)], [alone(4)]],
    behind: [next],
    behindAgain: [next],
  };
  const isAround = (more: Partial<Unreadable>): boolean => aroundUnreadable({ ...tried, ...more }) !== undefined;

  it('is proven so: the answers before and after it are neighbours', () => {
    expect(aroundUnreadable(tried)).toEqual({ after: 10, before: 100 });
    const evidence = new Evidence({ settleMs: 0 });
    expect(evidence.admitUnreadable(tried)).toBe(true);
    expect(proves(11, 100, evidence)).toBe(true);
  });

  it('holds for several in a row, if each failed alone', () => {
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

  it('needs a failure of a single row', () => {
    const company = { ...alone(4), page: 3, limit: 2 };
    expect(isAround({ failed: [[company], [company]] })).toBe(false);
    expect(isAround({ failed: [[{ ...company, page: 5 }], [{ ...company, page: 5 }]] })).toBe(false);
  });

  it('needs failures before and after, at the same position', () => {
    expect(isAround({ failed: [[alone(4)], []] })).toBe(false);
    expect(isAround({ failed: [[], [alone(4)]] })).toBe(false);
    expect(isAround({ failed: [[alone(3)], [alone(3)]] })).toBe(false);
    expect(isAround({ failed: [[alone(4)], [alone(5)]] })).toBe(false);
  });

  it('needs a failure', () => {
    expect(isAround({ failed: [[], []], adjacent: [single(3, 40), single(4, 60)] })).toBe(false);
  });

  it('needs both neighbours, each alone', () => {
    expect(isAround({ adjacent: [answer([], { page: 4, limit: 1 }), single(5, 60)] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 40), answer([], { page: 6, limit: 1 })] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 39), single(5, 60)] })).toBe(false);
    expect(isAround({ adjacent: [single(3, 40), single(5, 61)] })).toBe(false);
  });

  it('needs neighbours read alone, not together with the failing row', () => {
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

  it('is not proven if anything around it moved', () => {
    expect(isAround({ before: [page, answer([5, 10, 20, 30], { limit: 4 })] })).toBe(false);
    expect(isAround({ behindAgain: [answer([70, 80, 90, 100, 110], { page: 2, limit: 5 })] })).toBe(false);
  });

  it('is not proven if the page before ends elsewhere, or the one after starts elsewhere', () => {
    const shorter = answer([20, 30, 40], { limit: 3 });
    expect(isAround({ before: [shorter, shorter] })).toBe(false);
    const later = answer([60, 70, 80], { page: 3, limit: 3 });
    expect(isAround({ behind: [later], behindAgain: [later] })).toBe(false);
    const cut = answer([20, 30, 40], { limit: 4 });
    expect(isAround({ before: [cut, cut] })).toBe(false);
  });

  it('is not proven by later pages that do not follow on, are not full, or are missing', () => {
    const third = answer([110, 120], { page: 3, limit: 5 });
    expect(isAround({ behind: [next, third], behindAgain: [next, third] })).toBe(true);
    expect(isAround({ behind: [next, third] })).toBe(false);
    const far = { ...third, query: { ...third.query, page: 4 } };
    expect(isAround({ behind: [next, far], behindAgain: [next, far] })).toBe(false);
    const short = answer([60, 70], { page: 2, limit: 5 });
    expect(isAround({ behind: [short, third], behindAgain: [short] })).toBe(false);
    expect(isAround({ behind: [] })).toBe(false);
  });

  it('is not proven with a row twice, or out of order', () => {
    const repeats = answer([60, 40, 70, 80, 90], { page: 2, limit: 5 });
    expect(isAround({ behind: [repeats], behindAgain: [repeats] })).toBe(false);
    const twice = answer([60, 70, 70, 80, 90], { page: 2, limit: 5 });
    expect(isAround({ behind: [twice], behindAgain: [twice] })).toBe(false);
    const reversed = answer([60, 55, 54, 53, 52], { page: 2, limit: 5 });
    expect(isAround({ behind: [reversed], behindAgain: [reversed] })).toBe(false);
  });

  // Positions belong to one query: another start has other rows there.
  it('is not proven by a failure of another query', () => {
    const elsewhere = { ...alone(4), start: 35 };
    expect(isAround({ failed: [[elsewhere], [elsewhere]] })).toBe(false);
  });

  // 15 should be between 10 and 20: these pages are not parts of one sorted list.
  it('is not proven by pages that are sorted only individually', () => {
    const back = answer([15, 70, 80, 90, 100], { page: 2, limit: 5 });
    expect(isAround({ adjacent: [single(3, 40), single(5, 15)], behind: [back], behindAgain: [back] })).toBe(false);
  });
});

describe('window: one unbroken interval starts before it and reaches its end', () => {
  const evidence = evidenceOf([answer([10, 20, 30]), answer([40, 50])]);

  it('is proven so', () => {
    expect(prove({ start: 11, end: 30 }, evidence).proven).toMatchObject({ start: 11, end: 30 });
    expect(prove({ start: 10.001, end: 12 }, evidence).proven).toBeDefined();
  });

  it('names what is missing, in order of time', () => {
    expect(prove({ start: 5, end: 60 }, evidence).gaps).toEqual([
      { start: 5, end: 10.001 },
      { start: 30, end: 40.001 },
      { start: 50, end: 60 },
    ]);
  });

  it('is not proven if the interval starts at its first instant, or ends before its last', () => {
    expect(prove({ start: 10, end: 30 }, evidence).gaps).toEqual([{ start: 10, end: 10.001 }]);
    expect(prove({ start: 11, end: 30.001 }, evidence).gaps).toEqual([{ start: 30, end: 30.001 }]);
  });

  it('is not proven by two intervals with a hole', () => {
    expect(prove({ start: 11, end: 50 }, evidence).proven).toBeUndefined();
  });

  it('is not proven by default', () => {
    expect(prove({ start: 0, end: 1 }, new Evidence({ settleMs: 0 })).gaps).toEqual([{ start: 0, end: 1 }]);
    expect(prove({ start: 1, end: 1 }, new Evidence({ settleMs: 0 })).proven).toBeUndefined();
  });

  it('is not proven by what a copy of the evidence learns', () => {
    const copy = evidence.fork();
    copy.admit(answer([10, 20, 30, 40, 50]));
    expect([proves(11, 50, copy), proves(11, 50, evidence)]).toEqual([true, false]);
    // It contradicts what the original saw.
    expect(evidence.fork().admit(answer([10, 30])).kind).toBe('contradicts');
  });
});

describe('Certified, which only the kernel creates', () => {
  const window = { start: 0, end: 10 };

  it('covers its own window only', () => {
    const real = certified(window);
    expect(Certified.covers(real, window)).toBe(true);
    expect(Certified.covers(real, { start: 2, end: 5 })).toBe(true);
    expect(Certified.covers(real, { start: -1, end: 10 })).toBe(false);
    expect(Certified.covers(real, { start: 0, end: 11 })).toBe(false);
    expect(Certified.covers(undefined, window)).toBe(false);
  });

  it('rejects objects of the same shape', () => {
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

  it('is not joined from objects of the same shape', () => {
    const forged = (start: number, end: number) => ({ start, end }) as unknown as Certified;
    expect(Certified.covers(Certified.join(forged(0, 5), forged(5, 10)), window)).toBe(false);
  });
});
