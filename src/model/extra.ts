/** The net under the columns: whatever no column takes is carried at its own path. */
export type JsonObject = Record<string, unknown>;

export interface Extra {
  /** Keeps a value at a path that columns know but could not hold. */
  put(path: string, value: unknown): void;
  /** All that was kept, or null when the columns took everything. */
  take(): JsonObject | null;
}

/**
 * Starts with every key that no column reads. Objects are made without a prototype, so that a key called `__proto__`
 * is a key like any other.
 */
export function createExtra(record: JsonObject, known: ReadonlyMap<string, ReadonlySet<string>>): Extra {
  let kept: JsonObject | null = null;
  const top = (): JsonObject => {
    kept ??= Object.create(null) as JsonObject;
    return kept;
  };

  const put = (parent: string, key: string, value: unknown): void => {
    if (parent === '') {
      top()[key] = value;
      return;
    }
    const holder = top()[parent];
    const inside = typeof holder === 'object' && holder !== null ? (holder as JsonObject) : Object.create(null);
    inside[key] = value;
    top()[parent] = inside;
  };

  const atTop = known.get('') as ReadonlySet<string>;
  for (const key of Object.keys(record)) {
    if (atTop.has(key)) continue;
    const value = record[key];
    const inside = known.get(key);
    // An object that columns look into is taken apart; anything else in its place (a string, a list) is carried whole.
    if (inside && typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const inner of Object.keys(value)) {
        if (!inside.has(inner)) put(key, inner, (value as JsonObject)[inner]);
      }
    } else if (!(inside && (value === null || value === ''))) {
      put('', key, value);
    }
  }

  return {
    put(path, value) {
      const [first = '', second] = path.split('.');
      if (second === undefined) put('', first, value);
      else put(first, second, value);
    },
    take: () => kept,
  };
}
