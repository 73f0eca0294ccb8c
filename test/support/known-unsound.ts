import type { TraitName } from '../../src/sandbox/traits.ts';

/**
 * Ways of answering that the reader does not survive yet. The simulation does not draw them, and the worlds of
 * test/faults that have one are expected to fail. Whoever mends one takes its name out here. Empty is the goal.
 */
export const KNOWN_UNSOUND: readonly TraitName[] = [
  'clockJitter',
  'clockSkew',
  'cutBytes',
  'dropLast',
  'emptyAnswers',
  'flapping',
  'fragile',
  'ignoreBounds',
  'ignoreLimit',
  'ignorePage',
  'limitCap',
  'maxSpan',
  'pagedTies',
  'pagesFromZero',
  'refuseAbove',
  'replicaLag',
  'retention',
  'roundStart',
  'shiftBounds',
  'sortJitter',
  'sortOrder',
  'strays',
  'timestampForm',
];

export const isKnownUnsound = (name: TraitName): boolean =>
  process.env.TRIBUTARY_ALL_WORLDS === undefined && KNOWN_UNSOUND.includes(name);

/** The same for the worlds of test/faults/odd-services.test.ts, by their names. */
export const KNOWN_UNSOUND_WORLDS: readonly string[] = [];

export const isKnownUnsoundWorld = (name: string): boolean =>
  process.env.TRIBUTARY_ALL_WORLDS === undefined && KNOWN_UNSOUND_WORLDS.includes(name);
