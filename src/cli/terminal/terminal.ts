/** Where a command writes. Results go to `out`, everything about how it went to `err`; tests read both. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether anybody still reads the results: `| head` goes away when it has seen enough. */
  hasReader(): boolean;
  /** A person is watching: lines may be rewritten in place. */
  isInteractive: boolean;
  /** Results go to a screen, and escape codes are welcome there. */
  isScreen: boolean;
  columns: number;
}

export function createTerminal(noColour: boolean): Terminal {
  const { stdout, stderr } = process;
  let hasReader = true;
  // A reader that goes away is no error of ours: the work goes on, its output is dropped.
  const onError = (error: NodeJS.ErrnoException): void => {
    if (error.code !== 'EPIPE') throw error;
  };
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    hasReader = false;
    onError(error);
  });
  stderr.on('error', onError);
  return {
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(text),
    hasReader: () => hasReader,
    isInteractive: stderr.isTTY === true,
    isScreen: stdout.isTTY === true && !noColour,
    // A terminal that does not know its width says 0; one that is resized says so at the next look.
    get columns() {
      return stderr.columns || 80;
    },
  };
}

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
