import { Argument, type Command } from 'commander';
import { STREAM_NAMES } from '../../model/streams.ts';
import { EXIT, type Register } from '../command.ts';

const EXAMPLES = `
Examples:
  tributary completion bash    print it
  eval "$(tributary completion bash)"            for this shell
  tributary completion bash > /etc/bash_completion.d/tributary
  tributary completion zsh > ~/.zfunc/_tributary
  tributary completion fish > ~/.config/fish/completions/tributary.fish`;

export const registerCompletion: Register = (program, action) => {
  program
    .command('completion', { hidden: true })
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal }, shell: Shell, _options: object, command: Command) => {
        terminal.out(SCRIPTS[shell](levelsOf(command.parent ?? command)));
        return EXIT.done;
      }),
    );
};

/** The command line as plain data, read from the commands themselves: a completion made of it cannot drift from them. */
export interface Level {
  /** `''` for the program, else `sync` or `cursor set`. */
  path: string;
  commands: Word[];
  options: Option[];
  /** The possible values of an argument. */
  values: readonly string[];
}

interface Word {
  name: string;
  doc: string;
}

export interface Option extends Word {
  /** `none`: a switch. Otherwise its possible values, a file, or free text. */
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
      (each) =>
        each.argChoices ??
        (each.name() === 'stream' ? [...STREAM_NAMES, ...(command.name() === 'sync' ? ['links'] : [])] : []),
    ),
  };
  return [level, ...children.flatMap((child) => levelsOf(child, [...path, child.name()]))];
}

const valueBehind = (flags: string, choices: readonly string[] | undefined): Option['value'] =>
  choices ?? (/<(?:FILE|PATH)>/.test(flags) ? 'file' : 'any');

/** The script that a shell loads for completion: plain text that contains every command and option. */
export const SCRIPTS = { bash, zsh, fish } as const;
type Shell = keyof typeof SCRIPTS;

/** `sync` and `cursor set`, as the scripts below build them, word by word. */
const arms = (levels: readonly Level[], arm: (level: Level) => string): string => levels.map(arm).join('\n');

const valueArms = (levels: readonly Level[], words: (values: readonly string[]) => string, file: string): string =>
  levels
    .flatMap(({ path, options }) =>
      options
        .filter(({ value }) => value !== 'none')
        .map(({ name, value }) => {
          const then = value === 'file' ? file : value === 'any' ? 'return' : words(value as readonly string[]);
          return `    '${path}:${name}') ${then} ;;`;
        }),
    )
    .join('\n');

const children = (levels: readonly Level[]): string =>
  levels.flatMap(({ path, commands }) => commands.map(({ name }) => `'${path}:${name}'`)).join('|');

/** Finds the command among the words typed so far. */
const walk = (levels: readonly Level[], each: string): string => `
  for word in ${each}; do
    case "$at:$word" in
      ${children(levels)}) at="\${at:+$at }$word" ;;
    esac
  done`;

/** The words before the one being completed. */
const BASH_WORDS = `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`;
const ZSH_WORDS = `"\${(@)words[2,CURRENT-1]}"`;

function bash(levels: readonly Level[]): string {
  const fill = (words: readonly string[]): string => `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"))`;
  return `# tributary completion for bash: eval "$(tributary completion bash)"
_tributary() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" at='' word${walk(levels, BASH_WORDS)}
  COMPREPLY=()
  case "$at:$prev" in
${valueArms(levels, (words) => `${fill(words)}; return`, 'COMPREPLY=($(compgen -f -- "$cur")); return')}
  esac
  case "$at" in
${arms(levels, (level) => `    '${level.path}') ${fill(wordsOf(level))} ;;`)}
  esac
}
complete -F _tributary tributary`;
}

function zsh(levels: readonly Level[]): string {
  const term = (name: string, doc: string): string => `'${name}:${quoted(doc).replaceAll(':', '\\:')}'`;
  const fill = ({ commands, options, values }: Level): string =>
    [...commands, ...options]
      .map(({ name, doc }) => term(name, doc))
      .concat(values.map((v) => `'${v}'`))
      .join(' ');
  return `#compdef tributary
# tributary completion for zsh: eval "$(tributary completion zsh)"
_tributary() {
  local at='' word; local -a found${walk(levels, ZSH_WORDS)}
  case "$at:$words[CURRENT-1]" in
${valueArms(levels, (words) => `compadd -- ${words.join(' ')}; return`, '_files; return')}
  esac
  case "$at" in
${arms(levels, (level) => `    '${level.path}') found=(${fill(level)}) ;;`)}
  esac
  _describe tributary found
}
compdef _tributary tributary`;
}

function fish(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ path, commands, options, values }) => {
    const start = `complete -c tributary -n '__tributary_at "${path}"'`;
    return [
      ...commands.map(({ name, doc }) => `${start} -a ${name} -d '${quotedForFish(doc)}'`),
      ...values.map((value) => `${start} -a ${value}`),
      ...options.map(
        (option) =>
          `${start} -l ${option.name.replace(/^--/, '')}${fishValue(option)} -d '${quotedForFish(option.doc)}'`,
      ),
    ];
  });
  return `# tributary completion for fish: tributary completion fish | source
function __tributary_at
  set -l at ''
  for word in (commandline -opc)[2..]
    switch "$at:$word"
      case ${children(levels).replaceAll('|', ' ')}
        set at (string trim -- "$at $word")
    end
  end
  test "$at" = "$argv[1]"
end
complete -c tributary -f
${lines.join('\n')}`;
}

function fishValue({ value }: Option): string {
  if (value === 'none') return '';
  if (value === 'file') return ' -rF';
  return value === 'any' ? ' -x' : ` -xa '${value.join(' ')}'`;
}

const wordsOf = ({ commands, options, values }: Level): string[] => [
  ...commands.map(({ name }) => name),
  ...values,
  ...options.map(({ name }) => name),
];

/** Escapes for single quotes: bash and zsh have no escape inside them and must close and reopen them; fish has one. */
const quoted = (text: string): string => text.replaceAll("'", "'\\''");
const quotedForFish = (text: string): string => text.replaceAll("'", "\\'");
