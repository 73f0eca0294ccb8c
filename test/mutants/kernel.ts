import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { withShown } from '../../scripts/prove-table.ts';
import { MUTANTS, mutated } from './mutants.ts';

/**
 * `npm run mutants [-- --write]`: breaks each rule of evidence in turn, in a copy, and sees whether the tests of the rules or the small worlds
 * notice. A mutant that survives fails it. `--write` puts the list into mutants.md.
 */
const RULES = 'test/unit/proof-rules.test.ts';
const WORLDS = 'test/property/small-worlds.test.ts';
/** What the two need. */
const COPIED = ['src', 'test/support', 'test/tiers.ts', RULES, WORLDS];
/** Of the small worlds, one in so many: five or six of every behaviour. */
const EVERY = 997;
/** The kernel as it is: what fails here would fail for every mutant. */
const UNCHANGED = 'unchanged';

/** What of vitest's JSON report is of use here. */
interface Report {
  testResults: Array<{
    name: string;
    status: string;
    assertionResults: Array<{ status: string }>;
  }>;
}

/** How many tests of each file noticed, by mutant. */
type Noticed = Map<string, { rules: number; worlds: number }>;

function main(): number {
  const dir = mkdtempSync(join(tmpdir(), 'tributary-mutants-'));
  try {
    symlinkSync(resolve('node_modules'), join(dir, 'node_modules'));
    cpSync('package.json', join(dir, 'package.json'));
    copyTo(join(dir, UNCHANGED));
    for (const [i, mutant] of MUTANTS.entries()) {
      const file = join(copyTo(join(dir, nameOf(i))), 'src/extract/proof', `${mutant.file}.ts`);
      writeFileSync(file, mutated(readFileSync(file, 'utf8'), mutant));
    }
    const noticed = tryAll(dir);
    const unchanged = noticed.get(UNCHANGED);
    if (!unchanged || unchanged.rules + unchanged.worlds > 0) throw new Error('the kernel fails without any mutation');
    const table = tableOf(noticed);
    const survivors = MUTANTS.filter((_, i) => isSurvivor(noticed.get(nameOf(i))));
    process.stdout.write(`${table}\n\n${MUTANTS.length} mutants, ${survivors.length} survived\n`);
    for (const { rule, what } of survivors) process.stderr.write(`survived: ${rule}: ${what}\n`);
    if (process.argv.includes('--write') && survivors.length === 0) {
      writeFileSync(LIST, withShown(readFileSync(LIST, 'utf8'), table, 'mutants'));
    }
    return survivors.length === 0 ? 0 : 1;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const LIST = 'test/mutants/mutants.md';
const nameOf = (index: number): string => `mutant-${index}`;
const isSurvivor = (noticed = { rules: 0, worlds: 0 }): boolean => noticed.rules + noticed.worlds === 0;

function copyTo(dir: string): string {
  for (const path of COPIED) {
    mkdirSync(join(dir, dirname(path)), { recursive: true });
    cpSync(path, join(dir, path), { recursive: true });
  }
  return dir;
}

/** All of them in one run: starting is most of the time that the tests of the rules take. */
function tryAll(dir: string): Noticed {
  const [config, reportFile] = [join(dir, 'vitest.config.ts'), join(dir, 'report.json')];
  // A mutant may never come to an end.
  writeFileSync(
    config,
    'export default { test: { include: ["*/test/**/*.test.ts"], testTimeout: 60_000, isolate: false } };\n',
  );
  const reports = ['--reporter=json', `--outputFile.json=${reportFile}`];
  const env = { ...process.env, EVERY: `${EVERY}` };
  spawnSync('npx', ['vitest', 'run', '--root', dir, '--config', config, ...reports], { stdio: 'ignore', env });
  const { testResults } = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  const noticed: Noticed = new Map();
  for (const { name, status, assertionResults } of testResults) {
    const [mutant = '', ...path] = relative(dir, name).split('/');
    const failed = assertionResults.filter((test) => test.status === 'failed').length;
    const found = noticed.get(mutant) ?? { rules: 0, worlds: 0 };
    // A file that could not be loaded has no tests.
    found[path.join('/') === RULES ? 'rules' : 'worlds'] += Math.max(failed, status === 'failed' ? 1 : 0);
    noticed.set(mutant, found);
  }
  return noticed;
}

function tableOf(noticed: Noticed): string {
  const rows = MUTANTS.map(({ rule, what }, i) => {
    const { rules, worlds } = noticed.get(nameOf(i)) ?? { rules: 0, worlds: 0 };
    return `| ${rule} | ${what} | ${rules || '–'} | ${worlds || '–'} |`;
  });
  return ['| rule | mutant: believes | tests of the rules | small worlds |', '|---|---|--:|--:|', ...rows].join('\n');
}

process.exitCode = main();
