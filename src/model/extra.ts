import { BadRecord } from './errors.ts';

/** The net under the columns: whatever no column takes is carried at its own path. */
export type JsonObject = Record<string, unknown>;

export interface Extra {
  /** Keeps a value under its key, at the top or inside `parent`. */
  put(parent: string | undefined, key: string, value: unknown): void;
  /** All that was kept, or null when the columns took everything. */
  take(): JsonObject | null;
}

/** What privacy takes out of a value on its way into the net; undefined: all of it. */
export type Withhold = (parent: string | undefined, key: string, value: unknown) => unknown;

/** Objects are made without a prototype, so that a key called `__proto__` is a key like any other. */
export function createExtra(withhold: Withhold): Extra {
  let kept: JsonObject | null = null;
  return {
    put(parent, key, value) {
      refuseTooDeep(value);
      const rest = withhold(parent, key, value);
      if (rest === undefined) return;
      kept ??= bare();
      if (parent === undefined) {
        kept[key] = rest;
        return;
      }
      const inside = isObject(kept[parent]) ? kept[parent] : bare();
      inside[key] = rest;
      kept[parent] = inside;
    },
    take: () => kept,
  };
}

export const bare = (): JsonObject => Object.create(null) as JsonObject;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * JSON.parse takes any depth; JSON.stringify and Postgres run out of stack after some thousand levels. Nothing that a
 * person made is as deep as this.
 */
const DEEPEST = 500;

export function refuseTooDeep(value: unknown): void {
  if (isDeeper(value, DEEPEST)) throw new BadRecord(`the record is nested deeper than ${DEEPEST} levels`);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) if (isDeeper(inner, levels - 1)) return true;
  return false;
}
