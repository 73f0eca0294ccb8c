import { quoteLiteral } from '../../cursor/database/sql.ts';

/** Minor units that are no hundredths (ISO 4217), in lower case: some services write USD, some usd. */
const ZERO_DECIMAL = [
  ...['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga'],
  ...['pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'],
] as const;

const THREE_DECIMAL = ['bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd'] as const;

/** Digits behind the point; two where the currency is not known. */
export const decimalsOf = (currency: string | null): number => {
  const isIn = (list: readonly string[]): boolean => currency !== null && list.includes(currency);
  return isIn(ZERO_DECIMAL) ? 0 : isIn(THREE_DECIMAL) ? 3 : 2;
};

/** Some services write USD, some usd, and some "" for none. */
export const currencyOf = (column: string): string => `nullif(lower(${column}), '')`;

/** What a minor unit is worth in its currency. */
export const majorPerMinor = (currency: string): string =>
  `case when ${currency} in (${ZERO_DECIMAL.map(quoteLiteral).join(', ')}) then 1 ` +
  `when ${currency} in (${THREE_DECIMAL.map(quoteLiteral).join(', ')}) then 0.001 else 0.01 end`;
