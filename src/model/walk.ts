import { type Extra, isObject, type JsonObject } from './extra.ts';

/**
 * One pass over a record: each key is either a place that some column reads, or unknown and carried in `extra`.
 * Looking every path up on its own costs three times as much, and unknown keys would need a second pass.
 */
export interface Walk {
  /** Where the value of a path stands in what `read` returns. */
  placeOf(path: string): number;
  read(record: JsonObject, extra: Extra): unknown[];
}

type Place = number | Lookup<number>;

/** Records are at most two deep where columns look: `timestamp`, `click.id`. */
export function createWalk(paths: Iterable<string>): Walk {
  const known = [...new Set(paths)];
  const top = createLookup(placesOf(known));

  return {
    placeOf: (path) => known.indexOf(path),
    read(record, extra) {
      const raw = new Array<unknown>(known.length).fill(undefined);
      const keys = Object.keys(record);
      const values = Object.values(record);
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i] as string;
        const value = values[i];
        const place = top(i, key);
        if (typeof place === 'number') raw[place] = value;
        else if (place === undefined) extra.put(undefined, key, value);
        else if (isObject(value)) readInside(key, value, place, raw, extra);
        // A string or a list where an object belongs is carried whole; null and "" only say that there is none.
        else if (value !== null && value !== '') extra.put(undefined, key, value);
      }
      return raw;
    },
  };
}

function readInside(parent: string, object: JsonObject, at: Lookup<number>, raw: unknown[], extra: Extra): void {
  const keys = Object.keys(object);
  const values = Object.values(object);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const place = at(i, key);
    if (place === undefined) extra.put(parent, key, values[i]);
    else raw[place] = values[i];
  }
}

/** What is known of the key that stands i-th in its object. */
type Lookup<T> = (i: number, key: string) => T | undefined;

/** Records have their keys in the same order, nearly always: what stood i-th in the last one is tried first. */
function createLookup<T>(known: ReadonlyMap<string, T>): Lookup<T> {
  const lastKeys: string[] = [];
  const lastFound: (T | undefined)[] = [];
  return (i, key) => {
    if (lastKeys[i] !== key) {
      // Keys of a strange record are not worth remembering without end.
      if (i > lastKeys.length || i > 1000) return known.get(key);
      lastKeys[i] = key;
      lastFound[i] = known.get(key);
    }
    return lastFound[i];
  };
}

function placesOf(paths: readonly string[]): ReadonlyMap<string, Place> {
  const top = new Map<string, Place>();
  const inside = new Map<string, Map<string, number>>();
  paths.forEach((path, i) => {
    const [first = '', second] = path.split('.');
    if (second === undefined) top.set(first, i);
    else inside.set(first, (inside.get(first) ?? new Map()).set(second, i));
  });
  for (const [parent, places] of inside) top.set(parent, createLookup(places));
  return top;
}
