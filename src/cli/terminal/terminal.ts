/** Where a command writes. Results go to `out`, everything about how it went to `err`; tests read both. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** A person is watching: lines may be rewritten in place. */
  isInteractive: boolean;
  hasColour: boolean;
  columns: number;
}

export function createTerminal(noColour: boolean): Terminal {
  const { stdout, stderr } = process;
  // A reader that goes away (`| head`) is no error of ours.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  return {
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(text),
    isInteractive: stderr.isTTY === true,
    hasColour: stdout.isTTY === true && !noColour,
    columns: stdout.columns ?? 80,
  };
}

export const bold = (terminal: Terminal, text: string): string =>
  terminal.hasColour ? `\x1b[1m${text}\x1b[22m` : text;
export const dim = (terminal: Terminal, text: string): string => (terminal.hasColour ? `\x1b[2m${text}\x1b[22m` : text);
