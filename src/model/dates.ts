import { EARLIEST, type Instant, parseInstant } from './instant.ts';

/** What people type: `90s`, `15m`, `1h`, `7d`, `2w`. */
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/;
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** Whole milliseconds, or undefined for what is no duration. */
export function parseDuration(text: string): number | undefined {
  const m = DURATION.exec(text.trim());
  if (!m) return undefined;
  return Math.round(Number(m[1]) * (UNITS[m[2] ?? ''] ?? Number.NaN));
}

/**
 * `2026-11-01`, `2026-11-01T10:00Z`, `7d` (that long before now) or `now`. Text without a zone is UTC. Longer ago than
 * instants reach is no date.
 */
export function parseDate(text: string, now: Instant): Instant | undefined {
  if (text.trim() === 'now') return now;
  const ago = parseDuration(text);
  if (ago === undefined) return parseInstant(text);
  return now - ago >= EARLIEST ? now - ago : undefined;
}
