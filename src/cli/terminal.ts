import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Cancelled, ConfigError } from '../model/errors.ts';

export { counted, duration, figure } from '../model/window.ts';

/**
 * A command's output. Results go to `out` and `say`, progress and notes to `err`. On a terminal, `say` and `err` wrap long lines; in a
 * pipe they do not.
 */
export interface Terminal {
  /** Never wrapped: JSON, SQL, scripts. */
  out(text: string): void;
  /** Text for people. */
  say(text: string): void;
  err(text: string): void;
  /** Whether the reader of the results is still there: `| head` closes the pipe early. */
  hasReader(): boolean;
  /** Whether `err` is a terminal, where lines may be rewritten in place. */
  isInteractive: boolean;
  /**
   * Sets a line at the bottom that is rewritten in place. Without a text, it removes the line; without a name, all lines. What `err`
   * prints appears above them. Does nothing if `err` is not a terminal.
   */
  live(name?: string, text?: string): void;
  /** Whether `out` is a terminal that accepts escape codes. */
  isScreen: boolean;
  columns: number;
  /** Resolves when the window of `out` changes its size. */
  resized(signal: AbortSignal): Promise<unknown>;
}

export function createTerminal(noColour: boolean, stderr: NodeJS.WriteStream = process.stderr): Terminal {
  const { stdout } = process;
  let hasReader = true;
  const lines = new Map<string, string>();
  let drawn = 0;
  /** Redraws the live lines below a text that stays. */
  const draw = (text: string): void => {
    const erase = drawn === 0 ? '' : `\r\x1b[2K${'\x1b[1A\x1b[2K'.repeat(drawn - 1)}`;
    drawn = lines.size;
    // A line that wraps could not be erased.
    stderr.write(`${erase}${text}${[...lines.values()].map((line) => line.slice(0, widthOf(stderr) - 1)).join('\n')}`);
  };
  // A terminal of unknown width reports 0. The width is read each time, because the terminal may be resized.
  const widthOf = (stream: NodeJS.WriteStream): number => stream.columns || 80;
  const wrapFor = (stream: NodeJS.WriteStream, text: string): string =>
    stream.isTTY === true ? wrapLines(text, widthOf(stream)) : text;
  // A closed pipe is not an error: the work continues, and its output is dropped.
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
    say: (text) => void stdout.write(`${wrapFor(stdout, text)}\n`),
    err: (text) => draw(wrapFor(stderr, text)),
    live(name, text) {
      if (stderr.isTTY !== true) return;
      if (name !== undefined && text === lines.get(name)) return;
      if (name === undefined) lines.clear();
      else if (text === undefined) lines.delete(name);
      else lines.set(name, text);
      if (drawn + lines.size > 0) draw('');
    },
    hasReader: () => hasReader,
    isInteractive: stderr.isTTY === true,
    isScreen: stdout.isTTY === true && !noColour,
    get columns() {
      return widthOf(stdout.isTTY === true ? stdout : stderr);
    },
    resized: (signal) => once(stdout, 'resize', { signal }),
  };
}

const GUTTER = '  ';

/** A plain table: text left-aligned, figures right-aligned, as narrow as its content. If that is too wide, the widest column is cut. */
export function table(
  headers: readonly string[],
  rows: ReadonlyArray<readonly string[]>,
  room = Number.POSITIVE_INFINITY,
): string {
  const lines = [headers, ...rows];
  const widths = headers.map((_, i) => Math.max(...lines.map((line) => width(line[i] ?? ''))));
  const tooMuch = widths.reduce((sum, wide) => sum + wide + GUTTER.length, -GUTTER.length) - room;
  const widest = Math.max(...widths);
  if (tooMuch > 0) widths[widths.indexOf(widest)] = Math.max(LEAST_CUT, widest - tooMuch);
  const isFigure = headers.map(
    (_, i) => rows.length > 0 && rows.every((row) => /^~?[\d.,]*( ?%| s)?$/.test(row[i] ?? '')),
  );
  const format = (line: readonly string[]): string =>
    widths
      .map((wide, i) => {
        const cell = cut(line[i] ?? '', wide).replace(BIDI_CONTROLS, '\ufffd');
        const space = ' '.repeat(wide - width(cell));
        return isFigure[i] ? `${space}${cell}` : `${cell}${space}`;
      })
      .join(GUTTER)
      .trimEnd();
  return [format(headers), widths.map((wide) => '─'.repeat(wide)).join(GUTTER), ...rows.map(format)].join('\n');
}

/** Bidirectional control characters: they would reverse the text after them, even in other cells. */
const BIDI_CONTROLS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A shorter part of a name would not identify it. */
const LEAST_CUT = 12;

/** Cuts the end of a sentence, but the middle of a name, since the end of a name distinguishes it from others. */
export function cut(text: string, room: number): string {
  const characters = [...text];
  if (characters.length <= room) return text;
  const end = text.includes(' ') ? 0 : Math.floor((room - 1) / 2);
  return `${characters.slice(0, room - 1 - end).join('')}…${end > 0 ? characters.slice(-end).join('') : ''}`;
}

const width = (text: string): number => [...text].length;

export interface FittedColumn<T> {
  header: string;
  of(row: T): string;
  /** The order in which columns are dropped on a narrow terminal: 1, then 2, … Columns without it always stay. */
  spare?: number;
}

/** Prints the columns that fit: a wrapped table is unreadable, and `--json` has everything. */
export function fittedTable<T>(columns: ReadonlyArray<FittedColumn<T>>, rows: readonly T[], room: number): string {
  const mostSpare = Math.max(0, ...columns.map(({ spare = 0 }) => spare));
  for (let left = 0; ; left++) {
    const shown = columns.filter(({ spare = mostSpare + 1 }) => spare > left);
    const text = table(
      shown.map(({ header }) => header),
      rows.map((row) => shown.map(({ of }) => of(row))),
      left === mostSpare ? room : undefined,
    );
    if (left === mostSpare || text.split('\n').every((line) => width(line) <= room)) return text;
  }
}

/** At most this many characters. */
export const shortened = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}…` : text;

export const minute = (iso: string | null | undefined): string => iso?.slice(0, 16).replace('T', ' ') ?? '';

/** A share as a percentage; 100% only if it is exactly all. */
export const percent = (share: number): string => (share === 1 ? '100%' : `${Math.floor(share * 1000) / 10}%`);

/** Wraps text at 80 columns, with every line but the first indented. */
export function wrap(text: string, indent: number, width = 80): string {
  const lines = [''];
  // Spaces at the beginning belong to the first word.
  for (const word of text.split(/(?<=\S) /)) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && indent + line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** Continues long lines under their beginning, indented by two. */
const wrapLines = (text: string, room: number): string =>
  text
    .split('\n')
    .map((line) => (width(line) > room ? wrap(line, line.search(/\S/) + 2, room) : line))
    .join('\n');

/** A term and its meaning, side by side; a long term has a line of its own. */
export function describeTerm(term: string, meaning: string, indent: number): string {
  const start = `  ${term}`;
  const text = wrap(meaning, indent);
  if (start.length + 2 > indent) return `${start}\n${' '.repeat(indent)}${text}`;
  return `${start.padEnd(indent)}${text}`;
}

export const canAsk = ({ isInteractive }: Terminal): boolean => isInteractive && process.stdin.isTTY === true;

/** Asks on the terminal. Ctrl-C and a closed terminal end the command before it changes anything. */
export function createPrompt(signal: AbortSignal) {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  // One interface for all questions: Node warns if each adds listeners.
  let leave = (): void => {};
  lines.on('close', () => leave()).on('SIGINT', () => lines.close());
  return {
    ask: (text: string) =>
      new Promise<string>((resolve, reject) => {
        leave = () => reject(new Cancelled('interrupted', { kept: 'nothing was changed' }));
        lines.question(text, { signal }).then(resolve, leave);
      }),
    close: () => lines.close(),
  };
}

/** Asks before an irreversible change. Without a terminal, `--yes` is required. */
export async function confirm(
  { terminal, signal }: { terminal: Terminal; signal: AbortSignal },
  question: string,
  { yes = false }: { yes?: boolean },
): Promise<void> {
  if (yes) return;
  if (!canAsk(terminal))
    throw new ConfigError('this cannot be undone, and there is no terminal for a prompt', {
      kept: 'everything; nothing was changed',
      next: 'add --yes; --dry-run shows what would be changed',
    });
  const prompt = createPrompt(signal);
  try {
    const answer = await prompt.ask(wrap(`${question} [y/N] `, 0, terminal.columns));
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    prompt.close();
  }
  throw new Cancelled('not confirmed', { kept: 'everything; nothing was changed', next: 'answer y, or add --yes' });
}
