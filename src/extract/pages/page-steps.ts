/**
 * Pages are numbered, so two consecutive pages never share a row, and nothing proves that no row was lost between them. Overlapping pages
 * are still possible: with a slightly smaller limit a higher page number starts a little before the end of what was read. 1,000 rows, then
 * page 2 of 990 (rows 990 to 1,980), then page 3 of 985, and so on.
 */
export interface Step {
  page: number;
  limit: number;
  /** The first position on the page, counted from 0, and the first one after it. */
  offset: number;
  end: number;
}

/** The step for a page number and a limit, the only two things a service lets one choose. */
export const stepOf = ({ page, limit }: Pick<Step, 'page' | 'limit'>): Step => ({
  page,
  limit,
  offset: limit * (page - 1),
  end: limit * page,
});

export const firstStep = (limit: number): Step => stepOf({ page: 1, limit });

/**
 * The page that gets furthest ahead of `covered` and starts at least `overlap` positions before it, but not before `low`; undefined if no
 * page gets ahead.
 */
export function nextStep(covered: number, overlap: number, maxLimit: number, low = 1): Step | undefined {
  const latest = covered - overlap;
  let best: Step | undefined;
  for (let limit = maxLimit; limit > 0; limit--) {
    const step = stepOf({ page: Math.floor(latest / limit) + 1, limit });
    if (step.offset >= low && step.end > (best?.end ?? covered)) best = step;
  }
  return best;
}

/** The longest page that starts exactly at a position: its limit must divide it. */
export function stepAt(offset: number, maxLimit: number): Step {
  if (offset === 0) return firstStep(maxLimit);
  let limit = Math.min(maxLimit, offset);
  while (offset % limit !== 0) limit--;
  return stepOf({ page: offset / limit + 1, limit });
}

/** The longest page that ends right before a position: its limit must divide it. */
export function stepEndingAt(end: number, maxLimit: number): Step {
  let limit = Math.min(maxLimit, end);
  while (end % limit !== 0) limit--;
  return stepOf({ page: end / limit, limit });
}

/** Enough for a day of a million rows on a server that cannot split it. */
export const MOST_PAGES = 2000;
