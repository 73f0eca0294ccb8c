import { parseInstant } from '../model/instant.ts';

/** One kind of value a trait can take: how it is described, read from text, and what the bare name means. */
export interface Kind<T> {
  values: string;
  /** What `name` without `=value` stands for; undefined when a value is needed. */
  bare: string | undefined;
  /** Undefined when the text is no such value. */
  read(text: string): T | undefined;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES: Record<string, number> = { '': 1, b: 1, kb: 1024, mb: 1024 * 1024 };

export const choice = <const T extends string>(...values: readonly [T, ...T[]]): Kind<T> => ({
  values: values.join('|'),
  bare: values[0],
  read: (text) => values.find((value) => value === text),
});

export const flag = (): Kind<boolean> => ({
  values: 'true|false',
  bare: 'true',
  read: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
});

export const count = (bare: number, unit = 'N'): Kind<number> => ({
  values: unit,
  bare: String(bare),
  read: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
});

export const share = (bare: number): Kind<number> => ({
  values: '0..1',
  bare: String(bare),
  read: (text) => (/^\d*\.?\d+$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
});

export const duration = (bare: string): Kind<number> => ({
  values: 'milliseconds, or 90s, 5m, 2h, 30d; may be negative',
  bare,
  read(text) {
    const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
    return match ? Number(match[1]) * (UNITS[match[2] ?? 'ms'] ?? 1) : undefined;
  },
});

export const bytes = (bare: string): Kind<number> => ({
  values: 'bytes, or 500kb, 4mb',
  bare,
  read(text) {
    const match = /^(\d+(?:\.\d+)?)(b|kb|mb)?$/i.exec(text);
    return match ? Number(match[1]) * (SIZES[(match[2] ?? '').toLowerCase()] ?? 1) : undefined;
  },
});

export const date = (): Kind<number> => ({ values: 'a date', bare: undefined, read: (text) => parseInstant(text) });

export const address = (bare: string): Kind<string> => ({
  values: 'a URL',
  bare,
  read: (text) => (URL.canParse(text) ? text : undefined),
});

/** `word`, or `word` with something after the sign: `fail@20`, `insert:3`, `day@-8`. The text itself is the value: it survives JSON. */
const worded =
  <S extends '@' | ':', N extends string | number>(sign: S, what: string, tail: RegExp) =>
  <const T extends string>(...words: readonly [T, ...T[]]): Kind<T | `${T}${S}${N}`> => ({
    values: `${words.length > 1 ? `(${words.join('|')})` : words[0]}[${sign}${what}]`,
    bare: words[0],
    read(text) {
      const [head, rest, ...more] = text.split(sign);
      const known = words.some((word) => word === head) && more.length === 0 && (rest === undefined || tail.test(rest));
      return known ? (text as T) : undefined;
    },
  });

export const wordAt = worded<'@', number>('@', 'N', /^\d+$/);
export const wordTimes = worded<':', number>(':', 'N', /^\d+$/);
/** A unit of the calendar, in a zone that is so many hours ahead of UTC. */
export const unitInZone = worded<'@', number>('@', 'HOURS', /^[+-]?\d+(\.\d+)?$/);
export const wordWithin = worded<'@', string>('@', 'DURATION', /^\d+(\.\d+)?(ms|s|m|h|d)$/);

/** So many of something, and a size: `3@100`. */
export const countAt = (bare: number, size: number): Kind<`${number}@${number}`> => ({
  values: 'COUNT@N',
  bare: `${bare}@${size}`,
  read: (text) => (/^\d+@\d+$/.test(text) ? (text as `${number}@${number}`) : undefined),
});

/** The two parts of such a value. */
export function wordAndNumber(text: string, fallback: number): { word: string; number: number } {
  const [word = '', number] = text.split(/[@:]/);
  return { word, number: number === undefined ? fallback : Number(number) };
}

/** The same, of a word with a duration. */
export function wordAndDuration(text: string, fallback: string): { word: string; ms: number } {
  const [word = '', time = fallback] = text.split('@');
  return { word, ms: duration(fallback).read(time) ?? 0 };
}
