import { createInterface } from 'node:readline/promises';
import { Cancelled } from '../../model/errors.ts';
import type { Terminal } from './terminal.ts';

/** Somebody sits there who can answer. */
export const canAsk = ({ isInteractive }: Terminal): boolean => isInteractive && process.stdin.isTTY === true;

export interface Prompt {
  ask(text: string): Promise<string>;
  close(): void;
}

/** Asks on the terminal. Ctrl-C and a closed terminal end the command with nothing done. */
export function createPrompt(signal: AbortSignal): Prompt {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  return {
    ask: (text) =>
      new Promise((resolve, reject) => {
        const leave = (): void => reject(new Cancelled('interrupted', { kept: 'nothing was changed' }));
        lines.once('close', leave).once('SIGINT', () => lines.close());
        lines.question(text, { signal }).then(resolve, leave);
      }),
    close: () => lines.close(),
  };
}

/** Before what cannot be undone. A script has nobody to ask: there the command itself is the answer. */
export async function confirm(
  { terminal, signal }: { terminal: Terminal; signal: AbortSignal },
  question: string,
  { yes = false }: { yes?: boolean },
): Promise<void> {
  if (yes || !canAsk(terminal)) return;
  const prompt = createPrompt(signal);
  try {
    const answer = await prompt.ask(`${question} [y/N] `);
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    prompt.close();
  }
  throw new Cancelled('not confirmed', { kept: 'everything; nothing was changed', next: 'answer y, or add --yes' });
}
