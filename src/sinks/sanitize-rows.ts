import { storableJson, storableText } from '../cursor/database/sql.ts';
import type { Column, Value } from '../model/columns.ts';
import type { Row } from '../model/flatten.ts';
import { bare, stringifyJson } from '../model/json.ts';
import type { Stream } from '../model/streams.ts';

/** Where a row says which of its columns hold something else than the service sent. Part of the data: readers query it. */
export const SANITIZED = '_mended';

/** What becomes of text, and of the text of JSON, that a sink cannot hold as it is. */
export interface TextRules {
  text(text: string): string;
  json(text: string): string;
}

/** Postgres refuses NUL and lone surrogates. */
export const POSTGRES_TEXT: TextRules = { text: storableText, json: storableJson };

/** UTF-8 has no lone surrogates; NUL is a character like any other. `JSON.stringify` writes a lone one as an escape. */
export const UTF8_TEXT: TextRules = {
  text: (text) => (text.isWellFormed() ? text : text.toWellFormed()),
  json: (text) =>
    text.includes('\\ud')
      ? text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[\\"/bfnrtu])/g, (pair) => (pair.length > 2 ? '\ufffd' : pair))
      : text,
};

export interface Sanitizer {
  /** One row after the other, as they are asked for: what stands in front, the stream's columns, `_extra`; JSON as text. */
  all(rows: readonly Row[], front?: readonly Value[]): Generator<Value[]>;
  /** How many rows were changed so far. */
  sanitized(): number;
}

/**
 * Rows as the sink can hold them. What it cannot becomes U+FFFD, and `_extra` names the columns where that happened, so that nobody
 * takes them for the service's own words. An event's id is the same in every sink: it follows Postgres everywhere.
 */
export function createSanitizer({ columns }: Stream, rules: TextRules): Sanitizer {
  let count = 0;

  const one = ({ values, extra }: Row, front: readonly Value[]): Value[] => {
    const stored: Value[] = [...front];
    const sanitized: string[] = [];
    for (let i = 0; i < columns.length; i++) {
      const { name, kind } = columns[i] as Column;
      const value = values[i] ?? null;
      if (value === null || (kind !== 'text' && kind !== 'json')) {
        stored.push(value);
        continue;
      }
      const text = kind === 'text' ? String(value) : stringifyJson(value);
      const fit =
        kind === 'json' ? rules.json(text) : name === 'event_id' ? POSTGRES_TEXT.text(text) : rules.text(text);
      if (fit !== text) sanitized.push(name);
      stored.push(fit);
    }
    const rest = extra === null ? null : stringifyJson(extra);
    const fitRest = rest === null ? null : rules.json(rest);
    if (fitRest !== rest) sanitized.push('_extra');
    if (sanitized.length === 0) {
      stored.push(fitRest);
    } else {
      count++;
      stored.push(rules.json(stringifyJson(Object.assign(bare(), extra, { [SANITIZED]: sanitized }))));
    }
    return stored;
  };

  return {
    *all(rows, front = []) {
      for (const row of rows) yield one(row, front);
    },
    sanitized: () => count,
  };
}
