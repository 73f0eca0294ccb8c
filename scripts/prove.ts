import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { ProofCase } from '../test/support/proof.ts';
import { faultsIn, proofsOf, SUITES, type TestResult, tableOf, withShown } from './prove-table.ts';

/**
 * `npm run prove [-- --write]`: every suite that tries to make Tributary lose or double a row, in its long form, and one table of
 * what came of it. `--write` puts it into the README, with the commit that it is of, whatever came of it. docs/internals/proof.md says what
 * each suite covers.
 */

/** What of vitest's JSON report is of use here. */
interface Report {
  testResults: Array<{ name: string; status: string; assertionResults: Array<{ fullName: string; status: string }> }>;
}

function main(): number {
  const [commit, changed] = [git('rev-parse', '--short', 'HEAD'), git('status', '--porcelain')];
  const isWriting = process.argv.includes('--write');
  if (isWriting && (commit === '' || changed !== '')) {
    process.stderr.write('--write names the commit that was proven: commit your changes first\n');
    return 2;
  }
  const began = Date.now();
  const dir = mkdtempSync(join(tmpdir(), 'tributary-prove-'));
  try {
    const [casesFile, reportFile] = [join(dir, 'cases.ndjson'), join(dir, 'report.json')];
    const reports = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    // The long form takes long, and on a busy machine longer: what hangs ends by the product's own limits.
    const args = ['vitest', 'run', '--testTimeout=600000', ...reports];
    const { status } = spawnSync('npx', [...args, ...SUITES.flatMap(({ files }) => files)], {
      stdio: 'inherit',
      env: { ...process.env, TRIBUTARY_PROVE: '1', TRIBUTARY_PROOF: casesFile },
    });
    const cases = readCases(casesFile);
    const proofs = proofsOf(cases, readTests(reportFile));
    const minutes = Math.round((Date.now() - began) / 60_000);
    const stamp = `One run of commit ${commit}, ${new Date().toISOString().slice(0, 10)}, ${minutes} minutes on ${availableParallelism()} cores.`;
    const open = `${cases.filter((each) => each.open).length} simulations left something open.`;
    const table = `${tableOf(proofs)}\n\n${stamp} ${open}`;
    const faults = [...faultsIn(proofs), ...(status === 0 ? [] : [`vitest ended with exit code ${status}`])];
    process.stdout.write(`\n${table}\n`);
    if (isWriting) writeFileSync('README.md', withShown(readFileSync('README.md', 'utf8'), table));
    for (const fault of faults) process.stderr.write(`not proven: ${fault}\n`);
    return faults.length === 0 ? 0 : 1;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const git = (...args: string[]): string => spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim() ?? '';

const readCases = (file: string): ProofCase[] =>
  (existsSync(file) ? readFileSync(file, 'utf8') : '')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ProofCase);

function readTests(file: string): TestResult[] {
  if (!existsSync(file)) return [];
  const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Report;
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const path = relative('.', name);
    const tests = assertionResults.map((test) => ({ file: path, name: test.fullName, status: test.status }));
    // A file that could not be loaded, or a hook that failed, shows only in the file's own status.
    const isSilent = status === 'failed' && tests.every((test) => test.status !== 'failed');
    return isSilent ? [...tests, { file: path, name: 'the file as a whole', status }] : tests;
  });
}

process.exitCode = main();
