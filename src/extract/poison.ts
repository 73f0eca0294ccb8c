import { ANSWER_TOO_LARGE } from '../api/client.ts';
import { RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { firstStep, type Step, stepAt } from './steps.ts';

/** Failures that a smaller page may get round. 401, 403 and the like would fail at any size. */
export function mayBeOnePage(error: unknown): error is RetryLater | StopStream {
  // Without an answer nothing is known of the page: nobody listens there, or the network is down.
  if (error instanceof RetryLater) return error.answer !== undefined && error.answer.status !== 429;
  if (!(error instanceof StopStream) || !error.answer) return false;
  return [413, 422].includes(error.answer.status) || error.answer.code === ANSWER_TOO_LARGE;
}

/** Why an ascending page cannot be had although the service is there. */
export type Diagnosis =
  /** It can, by now. */
  | { kind: 'passed' }
  /** It was too large: so many rows work. */
  | { kind: 'size'; limit: number }
  /** One row breaks every page that it stands on. */
  | { kind: 'poison'; position: number }
  /** The service does not go so deep. */
  | { kind: 'deep' };

/** An attempt whose failure is an answer too. */
export async function attempt(
  asker: Asker,
  from: Instant,
  { page, limit }: Pick<Step, 'page' | 'limit'>,
  { once }: { once: boolean },
): Promise<Answer | undefined> {
  try {
    return await asker.ask({ order: 'asc', from, page, limit, once });
  } catch (error) {
    // Recovery: that this page fails is what the caller wants to know.
    if (mayBeOnePage(error)) return undefined;
    throw error;
  }
}

/** The row at a position, alone. */
export const single = (position: number): Step => stepAt(position, 1);

/**
 * A page that fails because of the row at a position, where all before it can be had. Of the first page's rows it takes
 * the later half: small, and by a page number that every service serves.
 */
export function worstOf(failed: Step, position: number): Step {
  if (failed.offset > 0) return single(position);
  const half = (position >> 1) + 1;
  return position === 0 ? firstStep(1) : stepAt(half, half);
}

const FAR_AHEAD_MS = 300 * 86_400_000;

/** Asks for a time in which nothing can be: only a service that is down or refuses the stream fails that too. */
export async function assertThere({ ask, clock }: Asker): Promise<void> {
  await ask({ order: 'asc', from: clock.now() + FAR_AHEAD_MS, page: 1, limit: 1 });
}

/** Finds out by halving what is wrong with a page. Nothing is called poison before it failed with all retries. */
export async function diagnose(asker: Asker, from: Instant, failed: Step): Promise<Diagnosis> {
  await assertThere(asker);
  if (await attempt(asker, from, failed, { once: true })) return { kind: 'passed' };
  const { position, works } = await (failed.offset === 0 ? halveFirst : halveDeep)(asker, from, failed);
  const worst = position === undefined ? failed : worstOf(failed, position);
  const fails = !(await attempt(asker, from, worst, { once: false }));
  await assertThere(asker);
  if (!fails) return { kind: 'passed' };
  if (position === undefined) return { kind: 'size', limit: Math.max(1, works) };
  // On the first page there is no depth; elsewhere the next row, which is deeper still, must be there.
  const isPoison = failed.offset === 0 || (await attempt(asker, from, single(position + 1), { once: false }));
  return isPoison ? { kind: 'poison', position } : { kind: 'deep' };
}

interface Halved {
  /** The first row that fails; undefined where all of them can be had in smaller pages. */
  position: number | undefined;
  /** The most rows that could be had at once. */
  works: number;
}

/** The first page of all: what is before the row is always the first page too, only shorter. */
async function halveFirst(asker: Asker, from: Instant, { limit }: Step): Promise<Halved> {
  let works = 0;
  let fails = limit;
  while (fails - works > 1) {
    const middle = (works + fails) >> 1;
    if (await attempt(asker, from, stepAt(0, middle), { once: true })) works = middle;
    else fails = middle;
  }
  // If the row that seems to be to blame can be had with fewer others, the page was only too large.
  const half = await attempt(asker, from, worstOf(firstStep(limit), works), { once: true });
  return { position: half ? undefined : works, works };
}

/** A deeper page: what starts at its first row must have a limit that divides its position. */
async function halveDeep(asker: Asker, from: Instant, failed: Step): Promise<Halved> {
  let works = 0;
  let limit = Math.max(1, failed.limit >> 1);
  for (let position = failed.offset; position < failed.end; ) {
    const step = stepAt(position, Math.min(limit, failed.end - position));
    if (await attempt(asker, from, step, { once: true })) {
      works = Math.max(works, step.limit);
      position = step.end;
    } else if (step.limit === 1) {
      return { position, works };
    } else {
      limit = step.limit >> 1;
    }
  }
  return { position: undefined, works };
}
