/**
 * Pages are numbered, so two neighbouring pages never share a row, and nothing proves that none was lost between them.
 * Neighbours that overlap can be had all the same: with a slightly smaller limit a higher page number starts a little before the
 * end of what was read. 1,000 rows, then page 2 of 990 (rows 990 to 1,980), then page 3 of 985, and so on.
 */
export interface Step {
  page: number;
  limit: number;
  /** The first position on the page, counted from 0, and the first one after it. */
  offset: number;
  end: number;
}

export const firstStep = (limit: number): Step => ({ page: 1, limit, offset: 0, end: limit });

/** The longest page that starts at least `overlap` positions before `covered`; undefined where that would not get ahead. */
export function nextStep(covered: number, overlap: number, maxLimit: number): Step | undefined {
  const room = covered - overlap;
  if (room < 1) return undefined;
  const before = Math.ceil(room / maxLimit);
  const limit = Math.floor(room / before);
  const step = { page: before + 1, limit, offset: limit * before, end: limit * (before + 1) };
  return step.end > covered ? step : undefined;
}

/** The longest page that starts exactly at a position: its limit must divide it. */
export function stepAt(offset: number, maxLimit: number): Step {
  if (offset === 0) return firstStep(maxLimit);
  let limit = Math.min(maxLimit, offset);
  while (offset % limit !== 0) limit--;
  return { page: offset / limit + 1, limit, offset, end: offset + limit };
}
