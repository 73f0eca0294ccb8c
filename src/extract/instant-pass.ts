import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { joins } from './frontier.ts';
import { mayBeOnePage } from './poison.ts';
import { delivered } from './progress.ts';
import type { Slice } from './reader.ts';
import { firstStep, nextStep, type Step } from './steps.ts';
import { askNewest } from './walk-back.ts';

/** Where the rows of one instant are looked for. */
export interface InstantRequest {
  from: Instant;
  at: Instant;
  /** A page that shows where the instant begins. */
  start: Step;
}

export interface InstantPass {
  proven: boolean;
  /** The page that left the instant behind, where there is one. */
  past: Sheet | undefined;
}

/** A page, and where it was asked for. */
export interface Sheet {
  step: Step;
  answer: Answer;
}

const MOST_PASSES = 40;
const MOST_EMPTY_PAGES = 50;
/** Hidden rows weaken a pass: its pages are tied together by position alone, so it has to repeat more often. */
const REPEATS = { linked: 2, byPosition: 4 };

/**
 * Pages through an instant that has more rows than a page, or no neighbours: what a page of that instant alone can never
 * prove, since all its rows are edges. Its rows are delivered as they come. They are proven to be all
 * - when passes whose pages overlap read the same events in the same order again: ties are in a stable order then, and
 *   in that order the rule of the snapshot holds as it does in time;
 * - or, where ties are shuffled, when two passes count the same number of positions and as many distinct events were found.
 * Else they are given up, and said so.
 */
export async function* passInstant(asker: Asker, request: InstantRequest): AsyncGenerator<Slice, InstantPass> {
  let { start } = request;
  let before: Pass | undefined;
  let found = new Set<string>();
  let repeated = 1;
  for (let passes = 1; passes <= MOST_PASSES; passes++) {
    const pass = yield* readOnce(asker, { ...request, start });
    if (!pass.begins && start.offset > 0) {
      // Rows came or went and the page no longer shows where the instant begins: from the very first page, then.
      start = firstStep(asker.profile.pageRows);
      continue;
    }
    if (!pass.ended) return { proven: false, past: pass.past };
    repeated = before && sameOrder(before, pass) ? repeated + 1 : 1;
    if (pass.tie !== 'torn' && repeated >= REPEATS[pass.tie]) return { proven: true, past: pass.past };

    // An event that came or went shifts positions in the middle of a pass: only what was read since then can be counted.
    if (before?.positions === undefined || before.positions !== pass.positions) found = new Set();
    else for (const id of pass.ids) found.add(id);
    if (found.size > 0 && found.size === pass.positions) return { proven: true, past: joinedPast(pass, request.at) };
    before = pass;
  }
  return { proven: false, past: before?.past };
}

/** Counting proves the instant and nothing behind it: the page that left it behind must still show a row of it. */
const joinedPast = ({ past }: Pass, at: Instant): Sheet | undefined =>
  joins({ at, inclusive: true }, past?.answer.oldest) ? past : undefined;

interface Pass {
  /** In the order they came, each once. */
  ids: string[];
  /** How many rows the instant has, repeats included; undefined where hidden rows make that uncountable. */
  positions: number | undefined;
  /** Whether each page begins within the last one: shown by an event on both, by position alone, or not. */
  tie: 'linked' | 'byPosition' | 'torn';
  /** It is known where the instant begins, and where it ends. */
  begins: boolean;
  ended: boolean;
  past: Sheet | undefined;
}

async function* readOnce(asker: Asker, request: InstantRequest): AsyncGenerator<Slice, Pass> {
  const { from, at, start } = request;
  const most = asker.profile.pageRows;
  const ids = new Set<string>();
  const sheets: Sheet[] = [];
  const pass: Pass = { ids: [], positions: undefined, tie: 'linked', begins: false, ended: false, past: undefined };
  let emptyPages = 0;
  let idsChecked: number | undefined;

  for (let step: Step | undefined = start; step; ) {
    const answer = await askOn(asker, from, step);
    if (!answer) break;
    yield delivered(answer.rows, answer.rejected);
    const last = sheets.at(-1);
    const isPast = answer.newest !== undefined && answer.newest > at;
    const known = ids.size;
    for (const row of answer.rows) if (row.at === at) ids.add(row.id);
    if (!last) pass.begins = step.offset === 0 || (answer.oldest !== undefined && answer.oldest < at);
    pass.tie = weaker(pass.tie, tieOf(answer, last, at));
    // Behind a page that was not full there is the end, or rows that are hidden, or the last page for ever.
    if (!isPast && (answer.count === 0 || (last && last.answer.count < last.step.limit))) {
      emptyPages += ids.size > known ? 0 : 1;
      if (emptyPages > MOST_EMPTY_PAGES || (await seesEnd())) break;
    }
    sheets.push({ step, answer: isPast ? answer : withoutValues(answer) });
    if (isPast) {
      pass.past = { step, answer };
      break;
    }
    const isFull: boolean = answer.count === step.limit;
    step = nextStep(step.end, Math.max(1, isFull ? most >> 3 : most >> 2), most);
  }
  pass.ids = [...ids];
  pass.positions = countPositions(sheets, at);
  pass.ended = pass.past !== undefined || (await seesEnd());
  return pass;

  /** No page came that left the instant behind: then the newest page of all must show nothing of it that is new. */
  async function seesEnd(): Promise<boolean> {
    if (ids.size !== idsChecked) pass.ended = await endsThere(asker, from, at, ids);
    idsChecked = ids.size;
    return pass.ended;
  }
}

/** How a page hangs together with the one before it. */
function tieOf(answer: Answer, last: Sheet | undefined, at: Instant): Pass['tie'] {
  const first = answer.rows.find((row) => row.at >= at);
  if (!last) return 'linked';
  const isShared = first === undefined || last.answer.rows.some((row) => row.id === first.id);
  if (isShared || (answer.oldest !== undefined && answer.oldest < at)) return 'linked';
  // Where rows are hidden there may be none to share; the pages overlap by a quarter all the same.
  return last.answer.count < last.step.limit ? 'byPosition' : 'torn';
}

const weaker = (a: Pass['tie'], b: Pass['tie']): Pass['tie'] =>
  a === 'torn' || b === 'torn' ? 'torn' : a === 'byPosition' || b === 'byPosition' ? 'byPosition' : 'linked';

/** Positions can be counted where no page hides rows. The last one may: all that are hidden are on it then. */
function countPositions(sheets: readonly Sheet[], at: Instant): number | undefined {
  if (sheets.slice(0, -1).some(({ step, answer }) => answer.count < step.limit)) return undefined;
  const holding = sheets.filter(({ answer }) => answer.rows.some((row) => row.at === at));
  const [first, last] = [holding[0], holding.at(-1)];
  if (!first || !last) return undefined;
  const begin = first.step.offset + first.answer.rows.filter((row) => row.at < at).length;
  return last.step.offset + last.answer.rows.filter((row) => row.at <= at).length - begin;
}

async function endsThere(asker: Asker, from: Instant, at: Instant, ids: ReadonlySet<string>): Promise<boolean> {
  const far = await askNewest(asker, { from });
  const here = far?.answer.rows.filter((row) => row.at === at) ?? [];
  return here.length > 0 && here.every((row) => ids.has(row.id));
}

/** A deeper page. Where the service cannot serve it the pass ends unproven. */
async function askOn(asker: Asker, from: Instant, { page, limit }: Step): Promise<Answer | undefined> {
  try {
    return await asker.ask({ order: 'asc', from, page, limit });
  } catch (error) {
    if (mayBeOnePage(error)) return undefined;
    throw error;
  }
}

/** What a pass has to remember of a page: who was there and when. An instant may have millions of rows. */
const withoutValues = (answer: Answer): Answer => ({
  ...answer,
  rows: answer.rows.map((row) => ({ ...row, values: [], extra: null })),
});

const sameOrder = (a: Pass, b: Pass): boolean =>
  a.ids.length === b.ids.length && a.ids.every((id, i) => id === b.ids[i]);
