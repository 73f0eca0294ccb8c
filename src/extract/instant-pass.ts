import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { sameRows } from './frontier.ts';

/** Every event of one instant: what a page of that instant alone can never prove, since all its rows are edges. */
export interface InstantPass {
  rows: readonly Row[];
  rejected: Answer['rejected'];
  proven: boolean;
  /** The page that left the instant behind, where there is one. */
  past: Answer | undefined;
}

const MOST_PASSES = 40;

/**
 * Pages through an instant that has more rows than a page, or no neighbours. It is proven when as many distinct events
 * were found as there are positions, which a shuffling server reaches after some passes; or, where hidden rows make
 * positions uncountable, when two passes read the same events in the same order. Else it is given up, and said so.
 */
export async function passInstant(asker: Asker, from: Instant, at: Instant): Promise<InstantPass> {
  const found = new Map<string, Row>();
  let before: Pass | undefined;
  for (let passes = 0; passes < MOST_PASSES; passes++) {
    const pass = await readOnce(asker, from, at);
    // An event that came or went shifts all positions: what was counted against the old number means nothing now.
    if (before && before.ids.length !== pass.ids.length) found.clear();
    for (const row of pass.rows) found.set(row.id, row);
    const counted = pass.full && found.size === pass.ids.length;
    before = { ...pass, proven: counted || (before !== undefined && repeats(before, pass)) };
    if (before.proven) break;
  }
  const { rejected = [], past, proven = false } = before ?? {};
  return { rows: [...found.values()], rejected, proven, past };
}

interface Pass {
  rows: Row[];
  /** One per position, repeats included, in the order they came. */
  ids: string[];
  pages: number;
  /** No page but the last was short, and there were several: so positions could be counted. */
  full: boolean;
  rejected: Answer['rejected'];
  past: Answer | undefined;
  proven?: boolean;
}

async function readOnce(asker: Asker, from: Instant, at: Instant): Promise<Pass> {
  const limit = asker.profile.pageRows;
  const pass: Pass = { rows: [], ids: [], pages: 0, full: true, rejected: [], past: undefined };
  let last: Answer | undefined;
  for (let page = 1; ; page++) {
    const answer = await asker.ask({ order: 'asc', from, page, limit });
    const isPast = answer.newest !== undefined && answer.newest > at;
    if (answer.count === 0 || (last && !isPast && sameRows(last, answer))) break;
    if (last && last.count < limit) pass.full = false;
    const here = answer.rows.filter((row) => row.at === at);
    pass.rows.push(...here);
    pass.ids.push(...here.map((row) => row.id));
    pass.rejected = answer.rejected;
    pass.pages = page;
    last = answer;
    if (isPast) {
      pass.past = answer;
      break;
    }
  }
  if (pass.pages < 2) pass.full = false;
  return pass;
}

function repeats(a: Pass, b: Pass): boolean {
  if (a.ids.length !== b.ids.length) return false;
  if (a.ids.every((id, i) => id === b.ids[i])) return true;
  // On a single page the order of ties may differ; between two pages a different order could hide a row.
  return a.pages < 2 && b.pages < 2 && sameRows(a, b);
}
