import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { silentLog } from '../support/silent-log.ts';

/** Every start pays for modules loaded before a command is chosen, even to print one line. */

const STATIC = /^(?:import|export)\s+(?!type\b)(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]/gm;

/** Files and packages that a file imports. */
function loadedBy(entry: string): { files: Set<string>; packages: Set<string> } {
  const [files, packages] = [new Set<string>(), new Set<string>()];
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    for (const [, specifier = ''] of readFileSync(join('src', file), 'utf8').matchAll(STATIC)) {
      if (specifier.startsWith('.')) visit(normalize(join(dirname(file), specifier)));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  };
  visit(entry);
  return { files, packages };
}

it('choosing a command loads two packages and a handful of files', () => {
  const { files, packages } = loadedBy('cli/launch.ts');
  expect([...packages].sort()).toEqual(['commander', 'pino']);
  expect(files.size).toBeLessThan(15);
});

it('a help text loads nothing', () => {
  expect(loadedBy('cli/main.ts')).toEqual({ files: new Set(['cli/main.ts', 'cli/help.ts']), packages: new Set() });
});

it.each(['cli/setup/schema.ts', 'cli/setup/completion.ts', 'cli/setup/sandbox.ts'])(
  '%s needs no database, no config and no pacing',
  (file) => {
    expect([...loadedBy(file).packages].filter((name) => name !== 'commander')).toEqual([]);
  },
);

it('a sync loads all of them, so this test detects them', () => {
  const packages = ['cli/commands/sync.ts', 'app/parts.ts'].flatMap((file) => [...loadedBy(file).packages]);
  expect(packages).toEqual(expect.arrayContaining(['pg', 'zod', 'yaml', 'bottleneck', 'p-retry']));
});

it.each(['status', 'runs'])('%s, which only reads the state, loads no reader, no limiter and no sink', (command) => {
  const { files, packages } = loadedBy(`cli/commands/${command}.ts`);
  expect([...packages].filter((name) => /^(bottleneck|p-retry)$/.test(name))).toEqual([]);
  expect([...files].filter((file) => /^(extract\/reader|api\/client|.*-sink)\.ts$/.test(file))).toEqual([]);
});

it.each(['cli/commands/status.ts', 'cli/commands/runs.ts', 'cli/commands/cursor.ts', 'cli/setup/doctor.ts'])(
  '%s loads no lake, no queue and no web server',
  (file) => {
    const heavy = /^(@aws-sdk|hyparquet|@bokuweb|bullmq|ioredis|fastify|@bull-board|prom-client)/;
    expect([...loadedBy(file).packages].filter((name) => heavy.test(name))).toEqual([]);
  },
);

it('the build writes the help of every command as the command prints it', async () => {
  const built = JSON.parse(readFileSync('dist/cli/help.json', 'utf8')) as Record<string, string>;
  const helpOf = async (path: string): Promise<string> => {
    const lines: string[] = [];
    const terminal = { ...createTerminal(true), out: (text: string) => void lines.push(text) };
    const argv = [...path.split(' ').filter(Boolean), '--help'];
    await run(argv, { terminal, signal: new AbortController().signal, createLog: () => silentLog });
    return lines.join('\n');
  };
  for (const path of ['', 'sync', 'backfill list', 'cursor set', 'maintain'])
    expect(built[path]).toBe(await helpOf(path));
  expect(Object.keys(built).length).toBeGreaterThan(25);
});
