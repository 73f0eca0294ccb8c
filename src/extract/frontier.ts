import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Answer } from './ask.ts';

/**
 * How far a sweep has come. INVARIANT: every visible row of the window older than `at` has been delivered, or lies in a
 * slice that was called uncertified; with `inclusive`, those at that very instant too.
 */
export interface Frontier {
  at: Instant;
  inclusive: boolean;
}

/**
 * The rule of the snapshot: a page holds every row strictly between its oldest and its newest, however ties are
 * shuffled, rows hidden or pages shifted before and after. So a page that begins behind the frontier carries it to the page's newest.
 */
export const joins = (frontier: Frontier, oldest: Instant | undefined): boolean =>
  oldest !== undefined && (oldest < frontier.at || (frontier.inclusive && oldest === frontier.at));

/** The rows of a page that lie ahead of the frontier and before `end`; and its strays, which no other page may show. */
export function rowsAhead({ rows, strays }: SomeRows, { at, inclusive }: Frontier, end: Instant): Row[] {
  return rows.filter((row) => strays?.has(row) || ((inclusive ? row.at > at : row.at >= at) && row.at < end));
}

type SomeRows = Pick<Answer, 'rows'> & Partial<Pick<Answer, 'strays'>>;

/** Whether two pages show the same events: a page asked for twice, or a server that repeats its last page for ever. */
export function sameRows(a: Pick<Answer, 'rows'>, b: Pick<Answer, 'rows'>): boolean {
  if (a.rows.length !== b.rows.length) return false;
  const ids = new Set(a.rows.map((row) => row.id));
  return b.rows.every((row) => ids.has(row.id));
}

export const tiesAt = ({ rows }: Pick<Answer, 'rows'>, at: Instant): number =>
  rows.filter((row) => row.at === at).length;
