import { readFileSync } from 'node:fs';

/** Written by the build (`setup/help.ts`): to print its help, a command would load everything that it works with. */
export const HELP_FILE = new URL('help.json', import.meta.url);

/** The text for `… --help`, where it was built. */
export function builtHelp(argv: readonly string[]): string | undefined {
  const last = argv.at(-1);
  if (last !== '--help' && last !== '-h') return undefined;
  try {
    const texts = JSON.parse(readFileSync(HELP_FILE, 'utf8')) as Record<string, string>;
    const path = argv.slice(0, -1).join(' ');
    return Object.hasOwn(texts, path) ? texts[path] : undefined;
  } catch {
    // Recovery: nothing was built; the command itself knows its help.
    return undefined;
  }
}
