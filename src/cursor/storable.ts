/**
 * What Postgres can hold of a service's text. It refuses NUL, and jsonb lone surrogates too; one such character would fail
 * a batch for ever. The replacement character says that something stood there.
 */
const REPLACEMENT = '\ufffd';

export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\0') ? whole.replaceAll('\0', REPLACEMENT) : whole;
}

/**
 * JSON text as jsonb takes it: JSON.stringify writes NUL and lone surrogates as escapes. Escapes are read in pairs, so that
 * the text of one (a backslash, then `u0000`) stays, and in one pass: metadata can be a megabyte of backslashes.
 */
export function storableJson(text: string): string {
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|[\\"/bfnrtu])/gi, (pair) =>
    pair.length > 2 ? REPLACEMENT : pair,
  );
}
