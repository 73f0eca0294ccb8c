/**
 * JSON that keeps integers exact. JSON.parse turns 9007199254740993 into …992 without a word; ids and amounts of that size
 * exist. Such integers become BigInt here and are written back as the same digits.
 *
 * JavaScript's own answer (the reviver's `context.source`, `JSON.rawJSON`) needs Node 21; until Node 20 is gone, large
 * integers travel through JSON.parse as marked strings. The mark is a private-use character pair that no service sends.
 */
const MARK = '\uf8ff\ue000int:';

/** A cheap look: only pages that show sixteen digits where a value may stand pay for the slow path. */
const MAY_HOLD_LARGE_INTEGER = /[:[,]\s*-?\d{16}/;
const STRING_OR_LARGE_INTEGER = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

export function parseJson(text: string): unknown {
  if (!MAY_HOLD_LARGE_INTEGER.test(text)) return JSON.parse(text);
  const marked = text.replace(STRING_OR_LARGE_INTEGER, (token) =>
    token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${MARK}${token}"`,
  );
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_key, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

export function stringifyJson(value: unknown): string {
  let large = false;
  const text = JSON.stringify(value, (_key, inner) => {
    if (typeof inner !== 'bigint') return inner;
    large = true;
    return `${MARK}${inner}`;
  });
  return large ? text.replace(MARKED, '$1') : text;
}
