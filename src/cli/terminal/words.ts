import { figure } from './table.ts';

/** How times and spans of time are said everywhere: short, and in UTC. */

/** `2026-11-15 04:20`; of null nothing. */
export const minute = (iso: string | null | undefined): string => iso?.slice(0, 16).replace('T', ' ') ?? '';

export function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Of a share: 100 % only where it is all of it. */
export const percent = (share: number): string => (share === 1 ? '100 %' : `${Math.floor(share * 1000) / 10} %`);

/** A count and its noun: `1 row`, `2 rows`. */
export const counted = (n: number, noun: string): string => `${figure(n)} ${noun}${n === 1 ? '' : 's'}`;

/** Words in lines of at most 80 columns, every line but the first behind an indent. */
export function wrap(text: string, indent: number, width = 80): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && indent + line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** A term and what it means, side by side; a long term has its line to itself. */
export function describeTerm(term: string, meaning: string, indent: number): string {
  const start = `  ${term}`;
  const text = wrap(meaning, indent);
  if (start.length + 2 > indent) return `${start}\n${' '.repeat(indent)}${text}`;
  return `${start.padEnd(indent)}${text}`;
}
