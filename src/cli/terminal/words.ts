import { figure } from './table.ts';

/** How times and spans of time are said everywhere: short, and in UTC. */

/** `2026-11-15 04:20`; of null nothing. */
export const minute = (iso: string | null | undefined): string => iso?.slice(0, 16).replace('T', ' ') ?? '';

export function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** A count and its noun: `1 row`, `2 rows`. */
export const counted = (n: number, noun: string): string => `${figure(n)} ${noun}${n === 1 ? '' : 's'}`;
