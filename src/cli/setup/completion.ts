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
    .argument('[word...]', 'for the script, after --: the words typed so far; prints candidates for the last one')
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal }, shell: keyof typeof SCRIPTS, words: string[], _options: object, command: Command) => {
        if (words.length === 0) terminal.out(SCRIPTS[shell]);
        else for (const { name, doc } of candidates(command.parent ?? command, words)) terminal.out(`${name}\t${doc}`);
        return EXIT.done;
      }),
    );
};

interface Candidate {
  name: string;
  doc: string;
}

/** Tells the shell to complete file names. */
const FILES: Candidate = { name: ':files', doc: '' };

/** The candidates for the last word. They come from the commands themselves, so they cannot drift from them. */
export function candidates(program: Command, words: readonly string[]): Candidate[] {
  const help = program.createHelp();
  const [typed, last = ''] = [words.slice(0, -1), words.at(-1)];
  let command = program;
  for (const word of typed) command = help.visibleCommands(command).find((child) => child.name() === word) ?? command;
  const options = help
    .visibleOptions(command)
    .map((option) => ({ ...option, name: option.long ?? option.short ?? '' }));
  const before = options.find(({ name }) => name === typed.at(-1));
  if (before && (before.required || before.optional)) {
    if (/<(?:FILE|PATH)>/.test(before.flags)) return [FILES];
    return starting(last, (before.argChoices ?? []).map(plain));
  }
  const values = command.registeredArguments.flatMap((each) => each.argChoices ?? valuesOf(command, each));
  return starting(last, [
    ...help.visibleCommands(command).map((child) => ({ name: child.name(), doc: child.description() })),
    ...values.map(plain),
    ...options.map(({ name, description }) => ({ name, doc: description })),
  ]);
}

const valuesOf = (command: Command, argument: Argument): string[] =>
  argument.name() === 'stream' ? [...STREAM_NAMES, ...(command.name() === 'sync' ? ['links'] : [])] : [];

const plain = (name: string): Candidate => ({ name, doc: '' });

const starting = (text: string, all: readonly Candidate[]): Candidate[] =>
  all.filter(({ name }) => name.startsWith(text));

/** At every Tab, the shell passes the words typed so far to the program and shows the candidates it prints. */
export const SCRIPTS = {
  bash: `# tributary completion for bash: eval "$(tributary completion bash)"
_tributary() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" word
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    if [ "$word" = '${FILES.name}' ]; then COMPREPLY=($(compgen -f -- "$cur")); else COMPREPLY+=("$word"); fi
  done < <(tributary completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _tributary tributary`,
  zsh: `#compdef tributary
# tributary completion for zsh: eval "$(tributary completion zsh)"
_tributary() {
  local word doc; local -a found
  while IFS=$'\\t' read -r word doc; do
    if [[ $word == '${FILES.name}' ]]; then _files; return; fi
    found+=("$word\${doc:+:\${doc//:/\\\\:}}")
  done < <(tributary completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe tributary found
}
compdef _tributary tributary`,
  fish: `# tributary completion for fish: tributary completion fish | source
function __tributary_candidates
  set -l found (tributary completion fish -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if string match -q '${FILES.name}*' -- $found
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c tributary -f -a '(__tributary_candidates)'`,
} as const;
