import type { Stored } from './leaves.ts';

export interface Dictionary {
  entries: Stored[];
  /** For each value, which entry it is. */
  places: Uint32Array;
}

/** After so many values it is clear enough whether a column repeats itself. */
const PROBE = 1000;
const MOST_ENTRIES = 2 ** 16;

/**
 * Most columns of an event tell of its link, its country, its browser: few values, again and again. They are written once, and
 * each row says which. Where half of the values or more are new (ids, times), that would only add to the size.
 */
export function findDictionary(values: readonly Stored[]): Dictionary | undefined {
  const known = new Map<Stored, number>();
  const places = new Uint32Array(values.length);
  const most = Math.min(values.length / 2, MOST_ENTRIES);
  let last: Stored | undefined;
  let place = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as Stored;
    if (value !== last) {
      place = known.get(value) ?? known.size;
      if (place === known.size) {
        if (place >= most || (i === PROBE && place > PROBE * 0.8)) return undefined;
        known.set(value, place);
      }
      last = value;
    }
    places[i] = place;
  }
  return known.size === 0 ? undefined : { entries: [...known.keys()], places };
}
