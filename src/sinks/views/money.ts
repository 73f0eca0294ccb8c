import { quoteLiteral } from '../../cursor/database/sql.ts';

/** Currencies whose minor unit is not a hundredth (ISO 4217), in lower case. */
const ZERO_DECIMAL = [
  ...['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga'],
  ...['pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'],
] as const;

const THREE_DECIMAL = ['bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd'] as const;

/** Digits after the decimal point; two for an unknown currency. */
export const decimalsOf = (currency: string | null): number => {
  const isIn = (list: readonly string[]): boolean => currency !== null && list.includes(currency);
  return isIn(ZERO_DECIMAL) ? 0 : isIn(THREE_DECIMAL) ? 3 : 2;
};

/** Some services write USD, some usd, and some "" for none. */
export const currencyOf = (column: string): string => `nullif(lower(${column}), '')`;

/** The value of a minor unit in major units. */
export const majorPerMinor = (currency: string): string =>
  `case when ${currency} in (${ZERO_DECIMAL.map(quoteLiteral).join(', ')}) then 1 ` +
  `when ${currency} in (${THREE_DECIMAL.map(quoteLiteral).join(', ')}) then 0.001 else 0.01 end`;
