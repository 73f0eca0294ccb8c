import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Action } from '../command.ts';
import { HELP_FILE } from '../help.ts';
import { loadProgram, run } from '../program.ts';
import { createTerminal, type Terminal } from '../terminal.ts';

/** The last step of the build: writes the help of every command, as the command prints it, into one file. */
export async function writeHelp(): Promise<void> {
  const noAction: Action = () => async () => {};
  const program = await loadProgram([], noAction, printTo([]));
  const texts: Record<string, string> = {};
  for (const path of pathsOf(program)) {
    const lines: string[] = [];
    const printed = { terminal: printTo(lines), signal: new AbortController().signal, createLog: noLog };
    await run([...path, '--help'], printed);
    texts[path.join(' ')] = lines.join('\n');
  }
  writeFileSync(HELP_FILE, JSON.stringify(texts));
}

const pathsOf = (command: Command): string[][] => [
  [],
  ...command.commands.flatMap((child) => pathsOf(child).map((path) => [child.name(), ...path])),
];

const terminal = createTerminal(true);
const printTo = (lines: string[]): Terminal => ({ ...terminal, out: (text) => void lines.push(text) });

const noLog = (): never => {
  throw new Error('a help text needs no log');
};
