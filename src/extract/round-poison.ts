import type { Row } from '../model/flatten.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { joins } from './frontier.ts';
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

const MOST_ADJACENT = 60;
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
  const before = (await standsThere(mark, position)) ? await readUpTo(mark) : undefined;
  const behind = await readBehind(mark);
  const next = behind?.step.offset ?? position;
  const after = before && (await standsThere(mark, next)) ? await readUpTo(mark) : undefined;
  await assertThere(asker);
  if (!behind) return undefined;

  const rowsBefore = before ?? [];
  const { rows, rejected, newest, oldest } = behind.answer;
  const edge = rowsBefore.at(-1)?.at ?? frontier.at;
  const aside = Array.from({ length: next - position }, (_, i) => reject(edge, error.message, i));
  const page = { rows: [...rowsBefore, ...rows], rejected: [...rejected, ...aside] };
  const isStill = before !== undefined && after !== undefined && sameOrder(before, after);
  // The first page of all is a link of the chain; any other one has to join what is known.
  const isJoined = failed.offset === 0 || joins(frontier, rowsBefore[0]?.at);
  if (newest !== undefined && newest > frontier.at) {
    yield progress.advance(page, newest, { certified: isStill && isJoined, note: SET_ASIDE });
  }
  return { step: behind.step, last: behind.answer, low: next, clearOf: oldest };
}

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

/** The rows of the page before the one that fails, in the order they came; undefined where they cannot be had. */
async function readUpTo({ asker, from, failed, position }: Mark): Promise<Row[] | undefined> {
  const rows: Row[] = [];
  for (let start = failed.offset; start < position; ) {
    const step = stepAt(start, position - start);
    const answer = await attempt(asker, from, step, { once: false });
    if (!answer) return undefined;
    rows.push(...answer.rows);
    start = step.end;
  }
  return rows;
}

/** The longest page that starts right behind the row, or behind further ones of its kind. */
async function readBehind({ asker, from, position }: Mark): Promise<{ step: Step; answer: Answer } | undefined> {
  for (let start = position + 1; start <= position + MOST_ADJACENT; start++) {
    for (let limit = asker.profile.pageRows; limit > 0; ) {
      const step = stepAt(start, limit);
      const answer = await attempt(asker, from, step, { once: step.limit > 1 });
      if (answer) return answer.count > 0 ? { step, answer } : undefined;
      limit = step.limit >> 1;
    }
    await assertThere(asker);
  }
  return undefined;
}

const sameOrder = (a: readonly Row[], b: readonly Row[]): boolean =>
  a.length === b.length && a.every((row, i) => row.id === b[i]?.id);

/** The row itself was never seen: what is kept is where it stands. The same place makes the same entry next time. */
const reject = (after: Instant, reason: string, index: number): Rejection => ({
  record: {
    unreadable: 'the service fails on every page that holds this row',
    after: toIso(after),
    ...(index > 0 && { index }),
  },
  reason,
});
