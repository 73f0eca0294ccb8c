import type { Terminal } from './terminal.ts';

/** Colours where a screen shows them and nobody asked for none; elsewhere the bare text. */
export interface Paint {
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

export function createPaint({ isScreen }: Pick<Terminal, 'isScreen'>): Paint {
  const colour =
    (code: number) =>
    (text: string): string =>
      isScreen ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { good: colour(32), warn: colour(33), bad: colour(31) };
}
