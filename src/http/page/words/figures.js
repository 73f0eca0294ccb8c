/** How numbers, spans of time and names are said everywhere. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,345` @param {number} n */
export const figure = (n) => whole.format(n);

/** `12.3K`, for axes and tight places. @param {number} n */
export const shortFigure = (n) => short.format(n);

/** A count and its noun: `1 row`, `2 rows`. @param {number} n @param {string} noun */
export const counted = (n, noun) => `${figure(n)} ${noun}${n === 1 ? '' : 's'}`;

/** Nearly nothing is not nothing, and nearly all is not all. @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.01) return '< 1 %';
  if (share < 1 && share > 0.99) return '> 99 %';
  return `${Math.round(share * 100)} %`;
}

/** `45 s`, `12 min`, `3 h 20 min`, `2 days 4 h`: as the command line says it. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return '< 1 s';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${hours / 24} days` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

/** With a capital, as a title has it. @param {string} word */
export const titled = (word) => `${word[0]?.toUpperCase() ?? ''}${word.slice(1)}`;
