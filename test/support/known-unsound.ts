import type { TraitName } from './odd-service/traits.ts';

/**
 * Ways of answering that the reader does not survive together with others yet. The simulation does not draw them. Whoever fixes one takes its name
 * out. Empty is the goal. By itself `pagesFromZero` is read whole.
 */
export const KNOWN_UNSOUND: readonly TraitName[] = ['pagesFromZero', 'sortJitter'];

export const isKnownUnsound = (name: TraitName): boolean =>
  process.env.TRIBUTARY_ALL_WORLDS === undefined && KNOWN_UNSOUND.includes(name);

/**
 * Ways of answering that leave something open for ever, however often one asks: rows out of reach, long ranges cut without a word, rows that come and go, answers that
 * prove nothing. Everything else must be proven after three runs.
 */
export const STAYS_OPEN: readonly TraitName[] = ['retention', 'maxSpan', 'flapping', 'sortOrder', 'sortJitter'];

/**
 * Those of the others that the reader does not prove in three runs yet: its pages get so small that a few ties at the end fill one; or bounds are
 * read in another zone, and where all rows lie within a few hours no short question shows the row beside a silence (4 of 10 worlds).
 */
export const NOT_PROVEN_YET: readonly TraitName[] = ['limitMax', 'maxBytes', 'refuseAbove', 'shiftBounds'];
