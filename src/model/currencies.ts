/**
 * Amounts are whole minor units of their currency. For most that is a hundredth; these differ (ISO 4217, as payment services count
 * them). In lower case: some services write USD, some usd.
 */
export const ZERO_DECIMAL = [
  ...['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga'],
  ...['pyg', 'rwf', 'ugx', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'],
] as const;

export const THREE_DECIMAL = ['bhd', 'iqd', 'jod', 'kwd', 'lyd', 'omr', 'tnd'] as const;

/** Digits behind the point; two where the currency is not known. */
export const decimalsOf = (currency: string | null): number => {
  const isIn = (list: readonly string[]): boolean => currency !== null && list.includes(currency);
  return isIn(ZERO_DECIMAL) ? 0 : isIn(THREE_DECIMAL) ? 3 : 2;
};
