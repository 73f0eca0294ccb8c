import type { Row } from '../model/flatten.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { joins } from './frontier.ts';
import type { Sheet } from './instant-pass.ts';
import { assertThere, attempt, single, worstOf } from './poison.ts';
import type { Progress } from './progress.ts';
import type { Rejection, Slice } from './reader.ts';
import { type Step, stepAt } from './steps.ts';

/** Where a walk by page numbers stands. */
export interface Footing {
  step: Step;
  last: Answer;
  /** Pages that start before this position fail. */
  low: number;
  /** The chain can go on by itself once it asks for nothing as old as this. */
  clearOf: Instant | undefined;
}

/** Each of them costs all retries twice; more in a row than this is another kind of trouble. */
const MOST_ADJACENT = 5;
const SET_ASIDE = 'a row that the service cannot show was set aside';

/**
 * Goes round a row that makes every page fail that it stands on. No page can show the row's two neighbours together, so
 * the row itself is the mark: it fails at its position before and after its neighbours are read, and what stands before
 * it reads the same both times. So nothing there has moved, and the page behind it begins where it seems to.
 */
export async function* roundPoison(
  progress: Progress,
  from: Instant,
  failed: Step,
  poison: { position: number; error: Error },
): AsyncGenerator<Slice, Footing | undefined> {
  const { asker, frontier } = progress;
  const { position, error } = poison;
  const mark = { asker, from, failed, position };
  const before = (await standsThere(mark, position + 1)) ? await readRange(mark, failed.offset, position) : undefined;
  const behind = await readBehind(mark);
  const last = behind?.sheets.at(-1);
  if (!behind || !last) {
    await assertThere(asker);
    return undefined;
  }
  const { next } = behind;
  const strip = [...(before ?? []), ...behind.sheets];
  const isStill =
    before !== undefined &&
    (await standsThere(mark, next)) &&
    sameOrder(before, await readRange(mark, failed.offset, position)) &&
    sameOrder(behind.sheets.slice(0, -1), await readRange(mark, next, last.step.offset));
  await assertThere(asker);

  const rows = rowsOf(strip);
  const edge = rowsOf(before ?? []).at(-1)?.at ?? frontier.at;
  const aside = Array.from({ length: next - position }, (_, i) => reject(edge, error.message, i));
  const rejected = [...strip.flatMap(({ answer }) => [...answer.rejected]), ...aside];
  // The first page of all is a link of the chain; any other one has to join what is known.
  const isJoined = failed.offset === 0 || joins(frontier, rows[0]?.at);
  const { newest } = last.answer;
  if (newest !== undefined && newest > frontier.at) {
    const certified = isStill && isJoined && isSeamless(strip);
    yield progress.advance({ rows, rejected }, newest, { certified, note: SET_ASIDE });
  }
  const clearOf = behind.sheets.find(({ answer }) => answer.oldest !== undefined)?.answer.oldest;
  return { step: last.step, last: last.answer, low: next, clearOf };
}

/**
 * Pages that follow each other without overlapping. Where ties are shuffled, one that should stand on the first may come
 * twice and another not at all: so no event twice, and each position counted or no seam between two ties.
 */
function isSeamless(sheets: readonly Sheet[]): boolean {
  const rows = rowsOf(sheets);
  if (new Set(rows.map((row) => row.id)).size < rows.length) return false;
  const isCounted = sheets.slice(0, -1).every(({ step, answer }) => answer.count === step.limit);
  return isCounted || sheets.every(({ answer }, i) => i === 0 || isApart(sheets[i - 1]?.answer.newest, answer.oldest));
}

const isApart = (a: Instant | undefined, b: Instant | undefined): boolean =>
  a === undefined || b === undefined || a < b;

const rowsOf = (sheets: readonly Sheet[]): Row[] => sheets.flatMap(({ answer }) => [...answer.rows]);

/** The row that fails, and the page that it was found on. */
interface Mark {
  asker: Asker;
  from: Instant;
  failed: Step;
  position: number;
}

/** The row is still where it was found, and so is any other up to `next` that had to be set aside with it. */
async function standsThere({ asker, from, failed, position }: Mark, next: number): Promise<boolean> {
  const works = async (step: Step): Promise<boolean> =>
    (await attempt(asker, from, step, { once: false })) !== undefined;
  if (await works(worstOf(failed, position))) return false;
  if (failed.offset === 0 && (await works(stepAt(0, position + 1)))) return false;
  if (next <= position + 1) return true;
  for (let other = position; other < next; other++) if (await works(single(other))) return false;
  // The row behind them is deeper still: if it can be had, their depth is not to blame.
  return works(single(next));
}

/** The pages between two positions; undefined where one cannot be had. */
async function readRange({ asker, from }: Mark, start: number, end: number): Promise<Sheet[] | undefined> {
  const sheets: Sheet[] = [];
  for (let position = start; position < end; ) {
    const step = stepAt(position, end - position);
    const answer = await attempt(asker, from, step, { once: false });
    if (!answer) return undefined;
    sheets.push({ step, answer });
    position = step.end;
  }
  return sheets;
}

interface Behind {
  /** The first position that can be had again. */
  next: number;
  /** Pages from there on. All but the last are too short to walk on from. */
  sheets: Sheet[];
}

/** What stands right behind the row, or behind further ones of its kind. */
async function readBehind({ asker, from, position }: Mark): Promise<Behind | undefined> {
  const most = asker.profile.pageRows;
  const sheets: Sheet[] = [];
  const ids = new Set<string>();
  let next = position + 1;
  for (let start = next; start <= position + MOST_ADJACENT + most; ) {
    const page = await longestAt(asker, from, start);
    if (!page && sheets.length === 0 && next < position + MOST_ADJACENT) {
      await assertThere(asker);
      next = ++start;
      continue;
    }
    // The end, or the last page for ever.
    if (!page || page.answer.count === 0 || page.answer.rows.every((row) => ids.has(row.id))) break;
    for (const row of page.answer.rows) ids.add(row.id);
    sheets.push(page);
    start = page.step.end;
    if (page.step.limit * 4 >= most || page.answer.count < page.step.limit) break;
  }
  return sheets.length > 0 ? { next, sheets } : undefined;
}

/** The longest page that starts at a position and does not fail; undefined where the row there fails itself. */
async function longestAt(asker: Asker, from: Instant, start: number): Promise<Sheet | undefined> {
  for (let limit = asker.profile.pageRows; limit > 0; ) {
    const step = stepAt(start, limit);
    const answer = await attempt(asker, from, step, { once: step.limit > 1 });
    if (answer) return { step, answer };
    limit = step.limit >> 1;
  }
  return undefined;
}

function sameOrder(a: readonly Sheet[], b: readonly Sheet[] | undefined): boolean {
  if (!b) return false;
  const [these, those] = [rowsOf(a), rowsOf(b)];
  return these.length === those.length && these.every((row, i) => row.id === those[i]?.id);
}

/** The row itself was never seen: what is kept is where it stands. The same place makes the same entry next time. */
const reject = (after: Instant, reason: string, index: number): Rejection => ({
  record: {
    unreadable: 'the service fails on every page that holds this row',
    after: toIso(after),
    ...(index > 0 && { index }),
  },
  reason,
});
