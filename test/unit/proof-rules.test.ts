import { describe, expect, it } from 'vitest';
import {
  APART_MS,
  beginning,
  confirmsNewest,
  emptyPagesFor,
  founding,
  inOrder,
  insideOf,
  looksBack,
  NARROW_MS,
  needsConfirmation,
  newestOfAll,
  nothingThere,
  type Observation,
  type PageQuery,
  type Stamped,
  tellsOrder,
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
import { Evidence, type Known } from '../../src/extract/proof/evidence.ts';
import { certified } from '../support/certified.ts';

/**
 * The rules of evidence (docs/extraction.md), one by one: what suffices, and what does not. Written from the contract, not from the code. A test
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

const timesOf = (line: readonly Stamped[] | undefined): number[] | undefined => line?.map(({ at }) => at);

const evidenceOf = (answers: readonly Observation[], known: Partial<Known> = {}): Evidence => {
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
  });

  it('such an answer adds nothing to what is known', () => {
    const evidence = evidenceOf([answer([3, 2, 1])]);
    expect(evidence.admit(answer([9, 8, 7]))).toEqual({ kind: 'unordered' });
    expect(evidence.around(2)).toBeUndefined();
    expect(evidence.seenBefore(100)).toEqual([]);
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
    expect(evidenceOf([answer([0, 500 * DAY], asked)]).around(300 * DAY)).toBeUndefined();
  });
});

describe('inside: every row strictly between the edges of an answer is on it', () => {
  it('is what lies between its oldest and its newest row', () => {
    expect(insideOf([1, 2, 5].map(row))).toEqual({ after: 1, before: 5 });
    expect(proves(2, 5, evidenceOf([answer([1, 2, 5])]))).toBe(true);
  });

  it('is not the instant of an edge: more rows may share it', () => {
    const evidence = evidenceOf([answer([1, 2, 5])]);
    expect(proves(1, 5, evidence)).toBe(false);
    expect(proves(2, 5.001, evidence)).toBe(false);
  });

  it('is nothing on a page of one instant, of one row, or without a row', () => {
    expect(insideOf(tie(3, 'a', 'b'))).toBeUndefined();
    expect(insideOf([row(3)])).toBeUndefined();
    expect(insideOf([])).toBeUndefined();
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

describe('newest: nothing visible is newer than the first row of the newest page', () => {
  const page = newest([30, 20, 10]);
  const line = inOrder(page) ?? [];

  it('the first page, newest first, asked for beyond the present', () => {
    expect(newestOfAll(page, line, 30)).toEqual({ after: 10, before: Number.POSITIVE_INFINITY });
    expect(newestOfAll(page, line, undefined)).toBeDefined();
  });

  it('not another page, another order, or an end before the present', () => {
    const other = (query: Partial<PageQuery>) => newestOfAll({ ...page, query: { ...page.query, ...query } }, line, 30);
    expect(other({ page: 2 })).toBeUndefined();
    expect(other({ order: 'asc' })).toBeUndefined();
    expect(other({ end: NOW - 1 })).toBeUndefined();
    expect(other({ end: NOW })).toBeDefined();
  });

  it('not an empty page', () => {
    expect(newestOfAll(newest([]), [], undefined)).toBeUndefined();
  });

  it('not where a newer row is known', () => {
    expect(newestOfAll(page, line, 31)).toBeUndefined();
    const stale = evidenceOf([newest([30, 20, 10], { start: NOW - 1 })], { newestSeen: 31, isProven: true });
    expect(stale.knowsEnd).toBe(false);
    expect(proves(20, NOW, stale)).toBe(false);
  });

  it('not where a newer row was seen in this run', () => {
    const seen = { newestSeen: 30, isProven: true };
    const evidence = evidenceOf([answer([30, 40, 50]), newest([30, 20, 10], { start: NOW - 1 })], seen);
    expect(evidence.knowsEnd).toBe(false);
  });

  it('a garbled time in the future is not the newest row that is known', () => {
    const future = answer([10, NOW + 5]);
    const evidence = evidenceOf([future, newest([45, 30, 20], { start: NOW - 1 })], { newestSeen: 30, isProven: true });
    expect(evidence.knowsEnd).toBe(true);
  });
});

describe('newest, confirmed: a second question with other edges shows the same newest row', () => {
  const claim = newest([30, 20, 10]);
  const other = (shown: readonly Shown[], query: Partial<PageQuery> = {}) =>
    newest(shown, { start: 29, limit: 5, ...query });
  const narrow = { start: NOW - NARROW_MS / 2 };

  it('is asked for where nothing was proven before, where the question reaches far back, and on a page of one instant', () => {
    expect(needsConfirmation(claim, true)).toBe(true);
    expect(needsConfirmation(claim, false)).toBe(true);
    const close = newest([NOW - 1, NOW - 2], { start: NOW - 3 });
    expect(needsConfirmation(close, true)).toBe(true);
    expect(needsConfirmation(close, false)).toBe(false);
    expect(needsConfirmation(newest(tie(NOW - 1, 'a', 'b'), { start: NOW - 3 }), false)).toBe(true);
  });

  it('suffices: another start, another limit, the same row', () => {
    expect(confirmsNewest(claim, other([30]), true)).toBe(true);
    expect(confirmsNewest(claim, other([30, 29.5]), true)).toBe(true);
  });

  it('does not suffice: the same start, nearly the same limit, another row, another page, an end before the present', () => {
    expect(confirmsNewest(claim, other([30], { start: 0 }), true)).toBe(false);
    expect(confirmsNewest(claim, other([30], { limit: 9 }), true)).toBe(false);
    expect(confirmsNewest(claim, other([31, 30]), true)).toBe(false);
    expect(confirmsNewest(claim, other(tie(30, 'twin')), true)).toBe(false);
    expect(confirmsNewest(claim, other([30], { page: 2 }), true)).toBe(false);
    expect(confirmsNewest(claim, other([30], { end: NOW - 1 }), true)).toBe(false);
    expect(confirmsNewest(claim, other([]), true)).toBe(false);
  });

  it('pages counted from nought show other rows at other limits, so neither is believed', () => {
    const all = Array.from({ length: 40 }, (_, i) => 40 - i);
    const second = (limit: number, start: number) =>
      newest(all.filter((at) => at > start).slice(limit, 2 * limit), { start, limit });
    const evidence = evidenceOf([second(10, 0), second(5, 10)]);
    expect(evidence.knowsEnd).toBe(false);
  });

  it('the latest hours show nothing newer: enough once something was proven, and not before', () => {
    expect(confirmsNewest(claim, newest([30], narrow), false)).toBe(true);
    expect(confirmsNewest(claim, newest([31], narrow), false)).toBe(false);
    expect(confirmsNewest(claim, newest([], narrow), true)).toBe(false);
    // Longer than this may be cut short as well.
    expect(confirmsNewest(claim, newest([], { start: NOW - NARROW_MS - 1 }), false)).toBe(false);
    // From beyond the present there is nothing to see.
    expect(confirmsNewest(claim, newest([], { start: NOW + 1 }), false)).toBe(false);
    // Records that cannot be read are not nothing.
    expect(confirmsNewest(claim, newest([], narrow, { count: 2 }), false)).toBe(false);
  });

  it('on a page of one instant the order cannot be told: the other order from right there must show nothing newer', () => {
    const tied = newest(tie(30, 'a', 'b'), { limit: 2 });
    const ascending = (shown: readonly Shown[], query: Partial<PageQuery> = {}) =>
      answer(shown, { start: 29, limit: 4, ...query });
    expect(confirmsNewest(tied, ascending(tie(30, 'a', 'b', 'c')), true)).toBe(true);
    expect(confirmsNewest(tied, ascending([...tie(30, 'a', 'b'), 31]), true)).toBe(false);
    expect(confirmsNewest(tied, newest(tie(30, 'a'), { start: 29, limit: 1 }), true)).toBe(false);
    expect(confirmsNewest(tied, ascending(tie(30, 'a'), { start: 31 }), true)).toBe(false);
    expect(confirmsNewest(tied, ascending(tie(30, 'a'), { start: -5000 }), true)).toBe(false);
    expect(confirmsNewest(tied, ascending(tie(30, 'a', 'b', 'c'), { limit: 3 }), true)).toBe(false);
    expect(confirmsNewest(tied, ascending([]), true)).toBe(false);
  });

  describe('on a page full of one instant, once a later page of the same question has shown older rows', () => {
    const full = newest(tie(30, 'a', 'b'), { limit: 2 });
    const later = (shown: readonly Shown[], query: Partial<PageQuery> = {}) =>
      newest(shown, { limit: 2, page: 2, ...query });
    const older = [...tie(30, 'c'), 20];

    it('its order is told: by that question alone, sorted as asked', () => {
      expect(tellsOrder(full, later(older))).toBe(true);
      expect(tellsOrder(full, later(tie(30, 'c', 'd')))).toBe(false);
      expect(tellsOrder(full, later([20, 19]))).toBe(false);
      expect(tellsOrder(full, later(older, { page: 1 }))).toBe(false);
      expect(tellsOrder(full, later(older, { limit: 3 }))).toBe(false);
      expect(tellsOrder(full, later(older, { start: 5 }))).toBe(false);
      expect(tellsOrder(full, later(older, { end: NOW + 5 }))).toBe(false);
      // Oldest first, whatever was asked: that instant is the oldest.
      expect(tellsOrder(full, later([...tie(30, 'c'), 40]))).toBe(false);
    });

    it('another start and limit with the same newest time confirm it, and nothing less', () => {
      const again = (shown: readonly Shown[], query: Partial<PageQuery> = {}) =>
        newest(shown, { start: 10, limit: 1, ...query });
      expect(confirmsNewest(full, again(tie(30, 'c')), true, true)).toBe(true);
      expect(confirmsNewest(full, again(tie(30, 'c')), true, false)).toBe(false);
      expect(confirmsNewest(full, again([31]), true, true)).toBe(false);
      expect(confirmsNewest(full, again(tie(30, 'c'), { start: full.query.start }), true, true)).toBe(false);
      expect(confirmsNewest(full, again(tie(30, 'c', 'd'), { limit: 3 }), true, true)).toBe(false);
    });

    it('together they say where everything ends', () => {
      const latest = newest([], narrow);
      const again = newest(tie(30, 'c'), { start: 10, limit: 1 });
      expect(evidenceOf([full, later(older), again, latest]).knowsEnd).toBe(true);
      expect(evidenceOf([full, again, latest]).knowsEnd).toBe(false);
      expect(evidenceOf([full, later(older), latest]).knowsEnd).toBe(false);
    });
  });

  it('a claim waits until it is confirmed, and then counts', () => {
    const evidence = evidenceOf([claim]);
    expect(evidence.knowsEnd).toBe(false);
    expect(proves(20, NOW, evidence)).toBe(false);
    evidence.admit(other([30]));
    evidence.admit(newest([], narrow));
    expect(evidence.knowsEnd).toBe(true);
    expect(proves(20, NOW, evidence)).toBe(true);
  });

  // Archives answer questions that begin in their time: both questions begin there, and show the archive's newest row.
  it('on a new stream an old newest row waits for the latest hours, which show nothing newer, before or after', () => {
    expect(evidenceOf([claim, other([30])]).knowsEnd).toBe(false);
    expect(evidenceOf([claim, other([30]), newest([NOW - 5000], narrow)]).knowsEnd).toBe(false);
    // Records that cannot be read are set aside; a page full of them might hide others.
    expect(evidenceOf([claim, other([30]), newest([], narrow, { count: 1 })]).knowsEnd).toBe(true);
    expect(evidenceOf([claim, other([30]), newest([], { ...narrow, limit: 2 }, { count: 2 })]).knowsEnd).toBe(false);
    expect(evidenceOf([claim, newest([], narrow), other([30])]).knowsEnd).toBe(true);
    expect(evidenceOf([claim, newest([], narrow)]).knowsEnd).toBe(false);
    // A question that does not begin in the latest hours, or ends before the present, is not one for them.
    expect(evidenceOf([claim, other([30]), newest([], { start: NOW - DAY })]).knowsEnd).toBe(false);
    expect(evidenceOf([claim, other([30]), newest([], { ...narrow, end: NOW - 1 })]).knowsEnd).toBe(false);
    // A newest row of the latest hours needs none.
    const recent = [NOW - 5000, NOW - 9000];
    const again = newest([NOW - 5000], { start: NOW - 5001, limit: 5 });
    expect(evidenceOf([newest(recent), again]).knowsEnd).toBe(true);
  });

  // The claim was made before the newer row was seen: of the two questions that should agree on its absence, only one could have shown it.
  it('a claim that a newer row contradicts is not confirmed any more', () => {
    const evidence = evidenceOf([claim, answer([35, 40]), other([30])]);
    expect(evidence.knowsEnd).toBe(false);
  });

  // Oldest first, a full page ends where it is full: that it ends with the same row says nothing of what is behind it.
  it('a page that comes oldest first confirms nothing, unless it is not full', () => {
    const full = answer([25, 26, 27, 28, 30], { start: 24, limit: 5 });
    expect(confirmsNewest(claim, full, true)).toBe(false);
  });

  it('for the latest hours neither', () => {
    const recent = newest([NOW - 5000, NOW - 2 * DAY], { start: NOW - 3 * DAY });
    const full = answer([NOW - 5000], { start: NOW - 6000, limit: 1 });
    expect(confirmsNewest(recent, full, false)).toBe(false);
  });

  // A service that is always oldest first, whatever is asked: four of an instant's five rows, on a full page, hide what is behind.
  it('a full page of one instant confirms nothing', () => {
    const tied = newest(tie(30, 'a', 'b'), { limit: 2 });
    const full = answer(tie(30, 'a', 'b', 'c', 'd'), { start: 29, limit: 4 });
    expect(confirmsNewest(tied, full, true)).toBe(false);
  });

  // Limits get capped: two of an instant's five rows, where eight were asked for. That a page is not full says nothing of what is behind it.
  it.fails('nor does a page of one instant that was cut', () => {
    const tied = newest(tie(30, 'a', 'b'), { limit: 4 });
    expect(confirmsNewest(tied, answer(tie(30, 'a', 'b'), { start: 29, limit: 8 }), true)).toBe(false);
  });

  // What proves is the newest page, with rows that are known on it. The latest hours can only refute it, and an empty answer does not.
  it('after a long silence of a stream that was proven, it stands unless the latest hours show something newer', () => {
    expect(confirmsNewest(claim, newest([], narrow), false)).toBe(true);
    expect(confirmsNewest(claim, newest([NOW - 5000], narrow), false)).toBe(false);
    expect(confirmsNewest(claim, newest([], narrow, { count: 1 }), false)).toBe(false);
    expect(confirmsNewest(claim, newest([], narrow), true)).toBe(false);
  });

  // An answer that lacks a row it should show is evidence of nothing, of the newest row too.
  it('an answer that contradicts what is known confirms nothing', () => {
    const evidence = evidenceOf([answer([24, 25, 26]), newest([30, 26, 25, 24, 10])]);
    expect(evidence.admit(newest([30, 20], { start: 15, limit: 5 })).kind).toBe('contradicts');
    expect(evidence.knowsEnd).toBe(false);
  });
});

describe('beginning: two questions that begin well apart show the same first row, and a third nothing before it', () => {
  const late = answer([500, 600, 700], { start: 0, limit: 10 });
  const early = answer([500, 600], { start: -APART_MS, limit: 5 });
  const bare = answer([], { start: -2 * APART_MS, end: 400 - DAY });

  it('suffices, from the later start on', () => {
    expect(beginning(late, early, bare)).toEqual({ after: -1, before: 700 });
    expect(beginning(early, late, bare)).toEqual({ after: -1, before: 700 });
    const evidence = evidenceOf([late, early]);
    expect(proves(0, 700, evidence)).toBe(false);
    evidence.admitBeginning(late, early, bare);
    expect(proves(0, 700, evidence)).toBe(true);
    expect(proves(-1, 700, evidence)).toBe(false);
  });

  it('a widened start shows rows from before it: they count, and not what lies before them', () => {
    const widened = (start: number, limit: number) => answer([500, 600, 700], { start, limit });
    expect(beginning(widened(550, 10), widened(550 - APART_MS, 5), bare)).toEqual({ after: 500, before: 700 });
  });

  it('one question does not, however close its first row is: starts are rounded up', () => {
    expect(beginning(late, late, bare)).toBeUndefined();
    expect(proves(0, 600, evidenceOf([answer([1, 700], { start: 0 })]))).toBe(false);
  });

  it('starts that a rounding makes the same do not', () => {
    expect(beginning(late, { ...early, query: { ...early.query, start: 1 - APART_MS } }, bare)).toBeUndefined();
  });

  it('another first row, or the same one at another time, does not', () => {
    expect(beginning(late, answer([400, 500], early.query), bare)).toBeUndefined();
    expect(beginning(late, answer([{ id: 'r500', at: 499 }, 600], early.query), bare)).toBeUndefined();
    expect(beginning(late, answer(tie(500, 'twin').concat(row(600)), early.query), bare)).toBeUndefined();
    expect(beginning(late, answer([], early.query), bare)).toBeUndefined();
  });

  it('later pages, the other order, an unordered answer or the same page size do not', () => {
    expect(beginning(late, { ...early, query: { ...early.query, page: 2 } }, bare)).toBeUndefined();
    expect(beginning(late, newest([600, 500], early.query && { ...early.query, order: 'desc' }), bare)).toBeUndefined();
    expect(beginning(late, answer([500, 600, 550], early.query), bare)).toBeUndefined();
    // Counted from nought, page 1 is the second: it begins elsewhere when it is of another size.
    expect(beginning(late, { ...early, query: { ...early.query, limit: 9 } }, bare)).toBeUndefined();
  });

  // Archives answer only where the asked end lies in their time: both questions, which end beyond the present, show the same first row of the rest.
  it('not where a question that ends before that row shows an older one', () => {
    expect(beginning(late, early, answer([100 - DAY, 200 - DAY], bare.query))).toBeUndefined();
    // Records that cannot be read are set aside; a page full of them might hide others.
    expect(beginning(late, early, answer([], bare.query, { count: 1 }))).toEqual({ after: -1, before: 700 });
    expect(beginning(late, early, answer([], { ...bare.query, limit: 2 }, { count: 2 }))).toBeUndefined();
  });

  it('that question ends a day before the row and begins no later than the others', () => {
    expect(beginning(late, early, answer([], { ...bare.query, end: 500 - DAY }))).toBeUndefined();
    expect(beginning(late, early, answer([], { ...bare.query, start: 1 - APART_MS }))).toBeUndefined();
  });

  it('where its end is widened it may show the same first row, oldest first', () => {
    expect(beginning(late, early, answer([500, 600], bare.query))).toEqual({ after: -1, before: 700 });
    expect(beginning(late, early, newest([600, 500], bare.query))).toBeUndefined();
    expect(beginning(late, early, answer([500, 600], { ...bare.query, page: 2 }))).toBeUndefined();
  });

  describe('on pages of one instant, which may be the end as well', () => {
    const [tied, tiedEarly] = [answer(tie(500, 'a', 'b'), late.query), answer(tie(500, 'a'), early.query)];
    const before = newest([], { start: -APART_MS, end: 499 });

    it('nothing may show before it either', () => {
      expect(beginning(tied, tiedEarly, answer(tie(500, 'a'), before.query))).toBeUndefined();
      expect(beginning(tied, tiedEarly, before)).toEqual({ after: -1, before: 500 });
      expect(beginning(tied, tiedEarly, newest([400], before.query))).toBeUndefined();
      expect(beginning(tied, tiedEarly, newest([], before.query, { count: 1 }))).toBeUndefined();
      expect(beginning(tied, tiedEarly, newest([], { ...before.query, end: 500 }))).toBeUndefined();
      expect(beginning(tied, tiedEarly, newest([], { ...before.query, start: 0 }))).toBeUndefined();
      // One of both is enough to leave it open.
      expect(beginning(tied, answer([...tie(500, 'a'), 600], early.query), before)).toBeUndefined();
    });
  });

  // The row was seen where both answers say that there is none: they contradict what is known.
  it('not where an older row is known', () => {
    const evidence = evidenceOf([answer([100, 200, 300]), late, early]);
    evidence.admitBeginning(late, early, bare);
    expect(proves(0, 600, evidence)).toBe(false);
  });
});

describe('founding: a service that refuses every older start has nothing older', () => {
  it('its first page from there shows the beginning', () => {
    expect(founding(answer([500, 600], { start: 100 }), 100)).toEqual({ after: 99, before: 600 });
    expect(proves(100, 600, evidenceOf([answer([500, 600], { start: 100 })], { founded: 100 }))).toBe(true);
  });

  it('not a later start, a later page, the other order, nor an empty or unordered answer', () => {
    expect(founding(answer([500, 600], { start: 101 }), 100)).toBeUndefined();
    expect(founding(answer([500, 600], { start: 100, page: 2 }), 100)).toBeUndefined();
    expect(founding(newest([600, 500], { start: 100 }), 100)).toBeUndefined();
    expect(founding(answer([], { start: 100 }), 100)).toBeUndefined();
    expect(founding(answer([600, 500], { start: 100 }), 100)).toBeUndefined();
  });

  it('says nothing of a service that refuses no start', () => {
    expect(proves(100, 600, evidenceOf([answer([500, 600], { start: 100 })]))).toBe(false);
  });

  // Always newest first, whatever is asked: a page of ties is the end of history, and looks like its beginning.
  it('not a page of one instant: its order cannot be told', () => {
    expect(founding(answer(tie(500, 'a', 'b'), { start: 100, limit: 2 }), 100)).toBeUndefined();
  });

  it('not where an older row is known', () => {
    const evidence = evidenceOf([answer([200, 300]), answer([500, 600], { start: 100 })], { founded: 100 });
    expect(proves(100, 600, evidence)).toBe(false);
  });
});

describe('nothing: questions that can go wrong in different ways show no row, at two polls', () => {
  const window = { start: NOW - 100 * DAY, end: NOW };
  const empty = (order: 'asc' | 'desc', query: Partial<PageQuery> = {}) => answer([], { order, ...query });
  const before = empty('desc', { start: window.start - APART_MS });
  const deep = Array.from({ length: emptyPagesFor(window) }, (_, i) =>
    empty('asc', { start: window.start - 1, page: i + 1 }),
  );
  const looks = looksBack(NOW, window.start).map((each) => empty('asc', { ...each, limit: 1 }));
  const all = [before, ...deep, ...looks];
  const isEmpty = (answers: readonly Observation[], earlier = [window]): boolean =>
    nothingThere(answers, earlier).length > 0;

  it('suffices where an earlier poll found the same', () => {
    expect(nothingThere(all, [window])).toEqual([{ after: window.start - 1, before: window.end }]);
    const evidence = new Evidence({ settleMs: 0, empty: [window] });
    evidence.admitNothing(all);
    expect(proves(window.start, window.end, evidence)).toBe(true);
  });

  it('not at the first poll, however often it is asked', () => {
    expect(isEmpty([...all, ...all, ...all], [])).toBe(false);
    const evidence = new Evidence({ settleMs: 0 });
    for (let time = 0; time < 3; time++) evidence.admitNothing(all);
    expect(proves(window.start, window.end, evidence)).toBe(false);
  });

  it('not where any answer shows a record, readable or not', () => {
    expect(isEmpty([...all, answer([5])])).toBe(false);
    expect(isEmpty([...all, answer([], {}, { count: 1 })])).toBe(false);
  });

  it('not where any of the questions is missing', () => {
    for (const left of [before, ...deep, ...looks.slice(1)]) {
      expect(isEmpty(all.filter((each) => each !== left))).toBe(false);
    }
  });

  it('not for a window that reaches further than the questions', () => {
    expect(isEmpty(all, [{ ...window, start: window.start - 1 }])).toBe(false);
    expect(isEmpty(all, [{ ...window, end: NOW + 2 * DAY }])).toBe(false);
  });

  it('not by one look over all of it: long ranges are answered with nothing', () => {
    const long = empty('asc', { start: window.start - 1, end: NOW + DAY, limit: 1 });
    expect(isEmpty([before, ...deep, long])).toBe(false);
  });

  it('not where anything was ever seen', () => {
    const known = { settleMs: 0, empty: [window] };
    const seenBefore = new Evidence({ ...known, newestSeen: 5 });
    seenBefore.admitNothing(all);
    expect(proves(window.start, window.end, seenBefore)).toBe(false);
    const seenNow = evidenceOf([answer([5])], known);
    seenNow.admitNothing(all);
    expect(proves(window.start, window.end, seenNow)).toBe(false);
  });
});

describe('agreement: an answer that lacks what was seen in its inside proves nothing', () => {
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
    const page = newest([40, 30, 20], { start: NOW - 1, end: NOW + DAY });
    const evidence = evidenceOf([page], { settleMs: 100, newestSeen: 40, isProven: true });
    expect(proves(21, NOW - 100, evidence)).toBe(true);
    expect(proves(21, NOW - 99, evidence)).toBe(false);
  });

  // Counted before it had settled; then an answer ends right there, later. A row that came late in between is missing from both.
  it('holds for ties that were counted, too', () => {
    const evidence = new Evidence({ settleMs: 100 });
    const pass = (limit: number): Count => ({
      limit,
      order: 'asc',
      places: 2,
      ids: new Set(['a', 'b']),
      isOpen: false,
      answeredAt: 1000,
    });
    for (const limit of [3, 2]) evidence.admitCount(950, pass(limit));
    evidence.admit(answer([900, 920, ...tie(950, 'a')], {}, { answeredAt: 2000 }));
    expect(evidence.through(920)).toBe(950);
  });
});

describe('overlap: stretches join where their insides overlap', () => {
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
    expect(countOf(pages, at)).toMatchObject({ places: 6, limit: 3, order: 'asc', isOpen: false });
    expect(countOf(pages, at)?.ids.size).toBe(6);
    const repeated = countOf(pages.with(1, page(2, tie(at, 'a', 'b', 'c'))), at);
    expect([repeated?.places, repeated?.ids.size]).toEqual([6, 4]);
  });

  it('also from the other side', () => {
    const back = pages.map(({ query: { page: number } }, i) =>
      newest([[30, ...tie(at, 'a', 'b')], tie(at, 'c', 'd', 'e'), [...tie(at, 'f'), 10]][i] ?? [], {
        page: number,
        limit: 3,
      }),
    );
    expect(countOf(back, at)).toMatchObject({ places: 6, order: 'desc' });
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
    expect(from(19)).toMatchObject({ places: 4 });
    expect(from(20)).toBeUndefined();
  });

  it('newest first, not from an end that may cut the instant: times are shown in whole seconds', () => {
    const upTo = (end: number) =>
      countOf(
        [newest(tie(at, 'a', 'b'), { limit: 2, end }), newest([...tie(at, 'c'), 10], { page: 2, limit: 2, end })],
        at,
      );
    expect(upTo(at + 1000)).toMatchObject({ places: 3 });
    expect(upTo(at + 999)).toBeUndefined();
  });

  it('where nothing shows behind it, a page that is not full ends it only if several behind it are empty', () => {
    const behind = Array.from({ length: EMPTY_BEHIND }, (_, i) => page(4 + i, []));
    const last = page(3, tie(at, 'f'));
    expect(countOf([...pages.slice(0, 2), last, ...behind], at)).toMatchObject({ places: 6, isOpen: true });
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
    places: 4,
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
    const earlier = [pass(5, 'abcd'), pass(4, 'abcd', { places: 3 })];
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

  it('the instant is closed, and what lies on both sides of it is one stretch', () => {
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
    neighbours: [single(3, 40), single(5, 60)],
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
      neighbours: [single(3, 40), single(6, 60)] as const,
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
    expect(isAround({ failed: [[], []], neighbours: [single(3, 40), single(4, 60)] })).toBe(false);
  });

  it('not without its neighbours, each alone', () => {
    expect(isAround({ neighbours: [answer([], { page: 4, limit: 1 }), single(5, 60)] })).toBe(false);
    expect(isAround({ neighbours: [single(3, 40), answer([], { page: 6, limit: 1 })] })).toBe(false);
    expect(isAround({ neighbours: [single(3, 39), single(5, 60)] })).toBe(false);
    expect(isAround({ neighbours: [single(3, 40), single(5, 61)] })).toBe(false);
  });

  it('not with a neighbour that was read in company: of the very row that is said to fail', () => {
    const five = answer([10, 20, 30, 40, 50], { limit: 5 });
    const behind = answer([70, 80], { page: 2, limit: 6 });
    const around = (left: Observation) =>
      aroundUnreadable({
        before: [five, five],
        neighbours: [left, single(6, 70)],
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
    expect(isAround({ neighbours: [single(3, 40), single(5, 15)], behind: [back], behindAgain: [back] })).toBe(false);
  });
});

describe('window: one unbroken stretch begins before it and reaches its end', () => {
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

  it('not where the stretch begins at its first instant, or ends before its last', () => {
    expect(prove({ start: 10, end: 30 }, evidence).gaps).toEqual([{ start: 10, end: 10.001 }]);
    expect(prove({ start: 11, end: 30.001 }, evidence).gaps).toEqual([{ start: 30, end: 30.001 }]);
  });

  it('not two stretches with a hole between them', () => {
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
