import type { Command } from 'commander';
import { STREAM_NAMES } from '../../src/model/streams.ts';

/** A command as plain data, for tests of every command. */
export interface Level {
  /** `''` for the program, otherwise `sync` or `cursor set`. */
  path: string;
  commands: string[];
  options: string[];
  /** The possible values of an argument. */
  values: readonly string[];
}

export function levelsOf(command: Command, path: readonly string[] = []): Level[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const level: Level = {
    path: path.join(' '),
    commands: children.map((child) => child.name()),
    options: help.visibleOptions(command).map(({ long, short }) => long ?? short ?? ''),
    values: command.registeredArguments.flatMap(
      (each) =>
        each.argChoices ??
        (each.name() === 'stream' ? [...STREAM_NAMES, ...(command.name() === 'sync' ? ['links'] : [])] : []),
    ),
  };
  return [level, ...children.flatMap((child) => levelsOf(child, [...path, child.name()]))];
}
