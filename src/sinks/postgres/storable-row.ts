import { storableJson, storableText } from '../../cursor/storable.ts';
import type { Value } from '../../model/coerce.ts';
import { bare } from '../../model/extra.ts';
import type { Row } from '../../model/flatten.ts';
import { stringifyJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';

/** Where a row says which of its columns hold something else than the service sent. */
export const MENDED = '_mended';

export interface StorableRow {
  /** In the stream's order, then `_extra`; JSON as text. */
  values: Value[];
  isMended: boolean;
}

/**
 * A row as Postgres can hold it. NUL characters and lone surrogates cannot be stored: they become U+FFFD, and `_extra` names the
 * columns where that happened, so that nobody takes them for the service's own words.
 */
export function createStorable(stream: Stream): (row: Row) => StorableRow {
  const { columns } = stream;
  return ({ values, extra }) => {
    const mended: string[] = [];
    const stored = columns.map(({ name, kind }, i): Value => {
      const value = values[i] ?? null;
      if (value === null || (kind !== 'text' && kind !== 'json')) return value;
      const text = kind === 'text' ? String(value) : stringifyJson(value);
      const fit = kind === 'text' ? storableText(text) : storableJson(text);
      if (fit !== text) mended.push(name);
      return fit;
    });
    const rest = extra === null ? null : stringifyJson(extra);
    const fitRest = rest === null ? null : storableJson(rest);
    if (fitRest !== rest) mended.push('_extra');
    if (mended.length === 0) return { values: [...stored, fitRest], isMended: false };
    const flagged = Object.assign(bare(), extra, { [MENDED]: mended });
    return { values: [...stored, storableJson(stringifyJson(flagged))], isMended: true };
  };
}
