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

type Places = ReadonlyMap<string, number | ReadonlyMap<string, number>>;

/** Records are at most two deep where columns look: `timestamp`, `click.id`. */
export function createWalk(paths: Iterable<string>): Walk {
  const known = [...new Set(paths)];
  const places = placesOf(known);

  return {
    placeOf: (path) => known.indexOf(path),
    read(record, extra) {
      const raw = new Array<unknown>(known.length).fill(undefined);
      for (const key of Object.keys(record)) {
        const value = record[key];
        const place = places.get(key);
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

function readInside(
  parent: string,
  object: JsonObject,
  places: ReadonlyMap<string, number>,
  raw: unknown[],
  extra: Extra,
): void {
  for (const key of Object.keys(object)) {
    const place = places.get(key);
    if (place === undefined) extra.put(parent, key, object[key]);
    else raw[place] = object[key];
  }
}

function placesOf(paths: readonly string[]): Places {
  const places = new Map<string, number | Map<string, number>>();
  paths.forEach((path, i) => {
    const [first = '', second] = path.split('.');
    if (second === undefined) {
      places.set(first, i);
      return;
    }
    const inside = places.get(first);
    if (inside instanceof Map) inside.set(second, i);
    else places.set(first, new Map([[second, i]]));
  });
  return places;
}
