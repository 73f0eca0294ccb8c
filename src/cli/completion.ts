import { Argument, type Command } from 'commander';
import type { Register } from './command.ts';
import { SCRIPTS, type Shell } from './completion/scripts.ts';
import { levelsOf } from './completion/tree.ts';
import { EXIT } from './exit-codes.ts';

const EXAMPLES = `
Examples:
  tributary completion bash    print it
  eval "$(tributary completion bash)"            for this shell
  tributary completion bash > /etc/bash_completion.d/tributary
  tributary completion zsh > ~/.zfunc/_tributary
  tributary completion fish > ~/.config/fish/completions/tributary.fish`;

export const registerCompletion: Register = (program, action) => {
  program
    .command('completion')
    .description('print what a shell needs to complete commands and options')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal }, shell: Shell, _options: object, command: Command) => {
        terminal.out(SCRIPTS[shell](levelsOf(command.parent ?? command)));
        return EXIT.done;
      }),
    );
};
