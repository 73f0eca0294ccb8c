import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadProgram, run } from '../../src/cli/program.ts';
import { candidates, SCRIPTS } from '../../src/cli/setup/completion.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { longLines, MAIN } from '../support/cli.ts';
import { type Level, levelsOf } from '../support/command-line.ts';
import { silentLog } from '../support/silent-log.ts';

/** Rules for every present and future command: each is tested. */

async function typed(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = {
    out: (text: string) => out.push(text),
    err: (text: string) => err.push(text),
    live: () => {},
    columns: 80,
  };
  const surroundings = { terminal: terminal as unknown as Terminal, signal: new AbortController().signal };
  const code = await run(argv, { ...surroundings, createLog });
  return { code, out: out.join('\n'), err: err.join('') };
}

let createLog = () => silentLog;

const program = await loadProgram([], () => async () => {}, {} as Terminal);
const LEVELS = levelsOf(program);
/** Our own commands; `help` is commander's. */
const COMMANDS = LEVELS.filter(({ path }) => path !== '' && !/(^| )help$/.test(path));
const LEAVES = COMMANDS.filter(({ commands }) => commands.length === 0);

it('that hits a bug says so, in text and as JSON', async () => {
  createLog = () => {
    throw new TypeError('x is not a function');
  };
  const { code, out, err } = await typed('config', 'check', '--json');
  createLog = () => silentLog;
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/^this is a bug in tributary, please report it: TypeError: x/),
  ]);
  const error = { message: 'this is a bug in tributary: x is not a function', exitCode: 1, kept: null, faults: [] };
  expect(JSON.parse(out)).toMatchObject({ format: 1, command: 'config check', error });
});

describe('every command', () => {
  it('is in this list', () => {
    expect(COMMANDS.length).toBeGreaterThan(18);
  });

  it.each(COMMANDS.map(({ path }) => [path]))(
    '%s --help has an example that names it, and fits 80 columns',
    async (path) => {
      const { code, out, err } = await typed(...path.split(' '), '--help');
      expect([code, err, longLines(out)]).toEqual([0, '', []]);
      expect(out).toMatch(/\nExamples?:\n/);
      expect(out).toContain(`\n  tributary ${path}`);
    },
  );

  it.each(LEAVES.map(({ path }) => [path]))(
    '%s: refuses an unknown flag, suggests the nearest and names the help',
    async (path) => {
      const { code, err } = await typed(...path.split(' '), '--hepl');
      expect(code).toBe(2);
      // A missing required option is reported first.
      expect(err).toMatch(
        /^(unknown option '--hepl'\n\(Did you mean --help\?\)|required option '--\w+ <\w+>' not specified)/,
      );
      expect(err).toContain(`next: see tributary ${path} --help`);
    },
  );

  it('has --json, unless its result is text for another program', () => {
    const without = LEAVES.filter(({ options }) => !options.includes('--json'));
    expect(without.map(({ path }) => path)).toEqual([]);
  });

  it('is documented', () => {
    const pages = readdirSync('docs').filter((name) => name.endsWith('.md'));
    const docs = ['README.md', ...pages.map((name) => `docs/${name}`)].map((page) => readFileSync(page, 'utf8')).join();
    expect(
      COMMANDS.filter(({ path }) => !docs.includes(`tributary ${path.split(' ')[0]}`)).map(({ path }) => path),
    ).toEqual([]);
  });

  it.each([
    [['stauts'], "unknown command 'stauts'\n(Did you mean status?)"],
    [['quarantine', 'lits'], "unknown command 'lits'\n(Did you mean list?)"],
  ])('%j suggests the nearest command', async (argv, message) => {
    expect(await typed(...argv)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
  });
});

describe('completion', () => {
  const words = ({ commands, options, values }: Level): string[] => [...commands, ...values, ...options];

  it("offers every command's flags and subcommands with their help texts, and nothing else", () => {
    for (const level of LEVELS) {
      const path = level.path === '' ? [] : level.path.split(' ');
      const offered = candidates(program, [...path, '']);
      expect(offered.map(({ name }) => name).sort()).toEqual(words(level).sort());
      for (const { name, doc } of offered) expect(doc !== '').toBe(!level.values.includes(name));
    }
  });

  it.each(['bash', 'zsh', 'fish'] as const)('for %s is a script that calls the program for words', async (shell) => {
    expect(await typed('completion', shell)).toEqual({ code: 0, out: SCRIPTS[shell], err: '' });
    expect(SCRIPTS[shell]).toContain(`tributary completion ${shell} -- `);
    const { code, out } = await typed('completion', shell, '--', 'cursor', 're');
    expect([code, out]).toEqual([0, 'reset\treset a stream to its start; its rows stay']);
  });

  /** What bash offers for a line with the cursor at its end. */
  const offered = (...line: string[]): string[] => {
    const script = `tributary() { "${process.execPath}" "${MAIN}" "$@"; }
${SCRIPTS.bash}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tributary; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const text = execFileSync('bash', ['-euc', script, 'bash', 'tributary', ...line], { encoding: 'utf8' });
    return text.split('\n').filter(Boolean);
  };

  it.each([
    [['st'], ['start', 'status']],
    [['cursor', 're'], ['reset']],
    [['sync', 'clicks', '--so'], ['--source']],
    [['sync', '--source', 'status', 'le'], ['leads']],
    [['schema', '--format', 'm'], ['markdown']],
    [['runs', '--source', ''], []],
    [['status', '--config', 'package.j'], ['package.json']],
    [['help', 'quar'], ['quarantine']],
  ])('bash completes %j', (line, wanted) => {
    expect(offered(...line)).toEqual(wanted);
  });
});
