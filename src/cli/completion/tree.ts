import type { Command } from 'commander';
import { STREAM_NAMES } from '../../model/streams.ts';

/** The command line as plain data, read from the commands themselves: a completion made of it cannot drift from them. */
export interface Level {
  /** `''` for the program, else `sync` or `cursor set`. */
  path: string;
  commands: Word[];
  options: Option[];
  /** What may stand where an argument is expected. */
  values: readonly string[];
}

export interface Word {
  name: string;
  doc: string;
}

export interface Option extends Word {
  /** `none`: a switch. Otherwise the words that fit behind it, a file, or something that only the person knows. */
  value: 'none' | 'file' | 'any' | readonly string[];
}

export function levelsOf(command: Command, path: readonly string[] = []): Level[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const level: Level = {
    path: path.join(' '),
    commands: children.map((child) => ({ name: child.name(), doc: child.description() })),
    options: help
      .visibleOptions(command)
      .map(({ long, short, description, required, optional, argChoices, flags }) => ({
        name: long ?? short ?? '',
        doc: description,
        value: required || optional ? valueBehind(flags, argChoices) : 'none',
      })),
    values: command.registeredArguments.flatMap(
      (each) => each.argChoices ?? (each.name() === 'stream' ? STREAM_NAMES : []),
    ),
  };
  // `help` is made by commander and takes the names of all the others.
  const others = children.filter((child) => child.name() !== 'help');
  const helps = children.filter((child) => child.name() === 'help');
  return [
    level,
    ...helps.map((child) => ({
      path: [...path, child.name()].join(' '),
      commands: level.commands,
      options: [],
      values: [],
    })),
    ...others.flatMap((child) => levelsOf(child, [...path, child.name()])),
  ];
}

const valueBehind = (flags: string, choices: readonly string[] | undefined): Option['value'] =>
  choices ?? (/<(?:FILE|PATH)>/.test(flags) ? 'file' : 'any');
