import { storableJson, storableText } from '../../cursor/storable.ts';
import type { Value } from '../../model/coerce.ts';
import type { Column } from '../../model/columns.ts';
import { bare } from '../../model/extra.ts';
import type { Row } from '../../model/flatten.ts';
import { stringifyJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';

/** Where a row says which of its columns hold something else than the service sent. */
export const MENDED = '_mended';

export interface Storable {
  /** One row after the other, as they are asked for: what stands in front, the stream's columns, `_extra`; JSON as text. */
  all(rows: readonly Row[], front?: readonly Value[]): Generator<Value[]>;
  /** How many rows were mended so far. */
  mended(): number;
}

/**
 * Rows as Postgres can hold them. NUL characters and lone surrogates cannot be stored: they become U+FFFD, and `_extra` names the
 * columns where that happened, so that nobody takes them for the service's own words.
 */
export function createStorable({ columns }: Stream): Storable {
  let count = 0;

  const one = ({ values, extra }: Row, front: readonly Value[]): Value[] => {
    const stored: Value[] = [...front];
    const mended: string[] = [];
    for (let i = 0; i < columns.length; i++) {
      const { name, kind } = columns[i] as Column;
      const value = values[i] ?? null;
      if (value === null || (kind !== 'text' && kind !== 'json')) {
        stored.push(value);
        continue;
      }
      const text = kind === 'text' ? String(value) : stringifyJson(value);
      const fit = kind === 'text' ? storableText(text) : storableJson(text);
      if (fit !== text) mended.push(name);
      stored.push(fit);
    }
    const rest = extra === null ? null : stringifyJson(extra);
    const fitRest = rest === null ? null : storableJson(rest);
    if (fitRest !== rest) mended.push('_extra');
    if (mended.length === 0) {
      stored.push(fitRest);
    } else {
      count++;
      stored.push(storableJson(stringifyJson(Object.assign(bare(), extra, { [MENDED]: mended }))));
    }
    return stored;
  };

  return {
    *all(rows, front = []) {
      for (const row of rows) yield one(row, front);
    },
    mended: () => count,
  };
}
