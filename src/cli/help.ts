import { readFileSync } from 'node:fs';

/** Written by the build (`setup/help.ts`), so that `--help` does not load the modules of a command. */
export const HELP_FILE = new URL('help.json', import.meta.url);

/** The prebuilt text for `… --help`, if there is one. */
export function builtHelp(argv: readonly string[]): string | undefined {
  const last = argv.at(-1);
  if (last !== '--help' && last !== '-h') return undefined;
  try {
    const texts = JSON.parse(readFileSync(HELP_FILE, 'utf8')) as Record<string, string>;
    const path = argv.slice(0, -1).join(' ');
    return Object.hasOwn(texts, path) ? texts[path] : undefined;
  } catch {
    // Recovery: the file was not built; the command prints its own help.
    return undefined;
  }
}
