import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { faultsIn, proofsOf, SUITES, shownIn, type TestResult, tableOf, withShown } from '../../scripts/prove-table.ts';
import { courseOf } from '../endurance/figures.ts';
import { MUTANTS, mutated } from '../mutants/mutants.ts';
import type { ProofCase } from '../support/proof.ts';

/** How `npm run prove` and `npm run endure` compute their figures. */

/** One case of every suite that records cases, and one test of every suite. */
const CASES: ProofCase[] = SUITES.map(({ name }) => ({ suite: name, name: 'one', survived: true }));
const TESTS: TestResult[] = SUITES.map(({ files: [file = ''] }) => ({
  file: `${file}x.ts`,
  name: 'x',
  status: 'passed',
}));
const proofOf = (suite: string, cases: readonly ProofCase[], tests: readonly TestResult[]) =>
  proofsOf(cases, tests).find((proof) => proof.suite.name === suite);

describe('the table of npm run prove', () => {
  it('has no faults if all survived', () => {
    expect(faultsIn(proofsOf(CASES, TESTS))).toEqual([]);
  });

  it('adds up cases and rows, and omits rows if there are none', () => {
    const more: ProofCase[] = [
      { suite: 'crash', name: 'two', survived: true, lost: 0, doubled: 0 },
      { suite: 'crash', name: 'three', survived: false, lost: 2, doubled: 1 },
      { suite: 'fuzz', name: 'property', survived: true, times: 3000 },
    ];
    const proofs = proofsOf([...CASES, ...more], TESTS);
    const [head, , crash] = tableOf(proofs).split('\n');
    expect(head).toBe('| suite | cases | survived | lost rows | doubled rows |');
    expect(crash).toMatch(/^\| \*\*crash\*\*: .* \| 3 \| 2 \| 2 \| 1 \|$/);
    expect(tableOf(proofs)).toMatch(/\*\*fuzz\*\*: .* \| 3,001 \| 3,001 \| – \| – \|/);
    expect(faultsIn(proofs)).toEqual(['crash: 1 cases not survived', 'crash: 2 rows lost', 'crash: 1 rows doubled']);
  });

  it('is a fault without a case', () => {
    expect(faultsIn(proofsOf(CASES.slice(1), TESTS))).toEqual(['crash: not a single case']);
    expect(faultsIn(proofsOf(CASES, []))).toEqual(['abuse: not a single case']);
  });

  it('counts a failed test without a recorded case as not survived', () => {
    const failed: TestResult = { file: 'test/faults/x.ts', name: 'y', status: 'failed' };
    expect(proofOf('wire', CASES, [...TESTS, failed])).toMatchObject({ cases: 2, survived: 1 });
    // A recorded one is not counted twice.
    const recorded: ProofCase = { suite: 'wire', name: 'y', survived: false };
    expect(proofOf('wire', [...CASES, recorded], [...TESTS, failed])).toMatchObject({ cases: 2, survived: 1 });
    expect(faultsIn(proofsOf(CASES, [...TESTS, failed]))).toEqual([
      'wire: 1 cases not survived',
      'test/faults/x.ts: y',
    ]);
  });

  it('is in the README, with the existing suites', () => {
    const page = readFileSync('README.md', 'utf8');
    const suites = [...shownIn(page).matchAll(/^\| (\*\*.*?) \|/gm)].map(([, suite]) => suite);
    expect(suites).toEqual(SUITES.map(({ name, what }) => `**${name}**: ${what}`));
    expect(shownIn(withShown(page, 'another'))).toBe('another');
  });
});

describe('the mutants of the kernel', () => {
  const kernel = (file: string): string => readFileSync(`src/extract/proof/${file}.ts`, 'utf8');

  it.each(MUTANTS.map((mutant) => [`${mutant.rule}: ${mutant.what}`, mutant] as const))('%s fits', (_, mutant) => {
    expect(mutated(kernel(mutant.file), mutant)).not.toBe(kernel(mutant.file));
  });

  it('are two or more for every rule', () => {
    const rules = [
      ...['answer', 'cover', 'counting', 'seen-rows', 'intervals', 'evidence', 'certified']
        .map(kernel)
        .join()
        .matchAll(/RULE ([a-z, ]+)\./g),
    ];
    const names = rules.map(([, name = '']) => name.replace(', ', ' '));
    expect(names).toHaveLength(16);
    expect(names.filter((name) => MUTANTS.filter(({ rule }) => rule === name).length < 2)).toEqual([]);
  });

  it('are listed in test/mutants/mutants.md', () => {
    const shown = shownIn(readFileSync('test/mutants/mutants.md', 'utf8'), 'mutants').split('\n').slice(2);
    expect(shown.map((line) => line.split(' | ').slice(0, 2).join(': ').slice(2))).toEqual(
      MUTANTS.map(({ rule, what }) => `${rule}: ${what}`),
    );
  });
});

describe('the growth of a figure over a run', () => {
  it('compares the last third with the first, after the warm-up', () => {
    // 20 of warm-up, then 80 that grow by half from start to end.
    const figures = Array.from({ length: 100 }, (_, i) => (i < 20 ? 10 * i : 200 + (i - 20) * 1.25));
    const { ratio, most } = courseOf(figures);
    expect(ratio).toBeGreaterThan(1.25);
    expect(ratio).toBeLessThan(1.35);
    expect(most).toBeCloseTo(298.75);
  });

  it('is 1 if the figure only fluctuates or stays 0', () => {
    expect(courseOf(Array.from({ length: 100 }, (_, i) => 200 + (i % 7))).ratio).toBeCloseTo(1, 1);
    expect(courseOf(Array.from({ length: 100 }, () => 0)).ratio).toBe(0);
  });

  it('is undefined for a handful of samples', () => {
    expect(() => courseOf([1, 2])).toThrow(RangeError);
  });
});
