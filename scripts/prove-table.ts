import type { ProofCase } from '../test/support/proof.ts';

/** What `npm run prove` runs, and the table it makes of it. Pure: reports are handed in. */

export interface Suite {
  name: string;
  /** As it stands in the table. */
  what: string;
  /** Beginnings of the paths of its test files. A file belongs to the first suite that names it. */
  files: readonly string[];
  /** Where a suite has no other unit, each of its tests is a case. */
  testsAreCases?: boolean;
}

export const SUITES: readonly Suite[] = [
  { name: 'crash', what: 'killed with SIGKILL, step by step', files: ['test/crash/'] },
  { name: 'wire', what: 'faults on the wire, of disks and of clocks', files: ['test/faults/'] },
  { name: 'bad input', what: 'broken records and answers', files: ['test/corpus/'] },
  {
    name: 'simulation',
    what: 'a service that moves, drifts and lies, by seeds',
    files: ['test/property/extraction-simulation.'],
  },
  { name: 'small worlds', what: 'every service of a lattice, in the small', files: ['test/property/small-worlds.'] },
  { name: 'fuzz', what: 'properties of parsers and planners, by runs', files: ['test/property/'] },
  {
    name: 'abuse',
    what: 'configs and command lines by mistake or malice',
    files: ['test/integration/abuse.'],
    testsAreCases: true,
  },
  { name: 'secrets', what: 'places searched for secrets', files: ['test/integration/secrets'] },
];

/** A test as vitest's JSON report has it; the file is a path inside the project. */
export interface TestResult {
  file: string;
  name: string;
  status: string;
}

export interface SuiteProof {
  suite: Suite;
  cases: number;
  survived: number;
  /** Undefined where the suite has no rows to lose. */
  lost: number | undefined;
  doubled: number | undefined;
  failedTests: string[];
}

export function proofsOf(cases: readonly ProofCase[], tests: readonly TestResult[]): SuiteProof[] {
  return SUITES.map((suite) => {
    const own = tests.filter(({ file }) => suiteOf(file) === suite);
    const failedTests = own.filter(({ status }) => status === 'failed').map(({ file, name }) => `${file}: ${name}`);
    const told = suite.testsAreCases ? own.filter(ran).map(asCase(suite)) : cases.filter((c) => c.suite === suite.name);
    const count = (some: readonly ProofCase[]): number => sum(some.map(({ times = 1 }) => times)) ?? 0;
    const survived = count(told.filter((c) => c.survived));
    return {
      suite,
      // A test that fails before it tells of its case did not survive all the same.
      cases: survived + Math.max(count(told) - survived, failedTests.length),
      survived,
      lost: sum(told.flatMap(({ lost }) => lost ?? [])),
      doubled: sum(told.flatMap(({ doubled }) => doubled ?? [])),
      failedTests,
    };
  });
}

const suiteOf = (file: string): Suite | undefined =>
  SUITES.find(({ files }) => files.some((beginning) => file.startsWith(beginning)));

const ran = ({ status }: TestResult): boolean => status === 'passed' || status === 'failed';

const asCase =
  ({ name: suite }: Suite) =>
  ({ name, status }: TestResult): ProofCase => ({ suite, name, survived: status === 'passed' });

const sum = (figures: readonly number[]): number | undefined =>
  figures.length === 0 ? undefined : figures.reduce((a, b) => a + b);

/** Why this is no proof: one line for each reason. */
export function faultsIn(proofs: readonly SuiteProof[]): string[] {
  return proofs.flatMap(({ suite: { name }, cases, survived, lost = 0, doubled = 0, failedTests }) => [
    ...(cases === 0 ? [`${name}: not a single case`] : []),
    ...(survived < cases ? [`${name}: ${cases - survived} cases not survived`] : []),
    ...(lost > 0 ? [`${name}: ${lost} rows lost`] : []),
    ...(doubled > 0 ? [`${name}: ${doubled} rows doubled`] : []),
    ...failedTests,
  ]);
}

const figure = (n: number | undefined): string => (n === undefined ? '–' : n.toLocaleString('en'));

export function tableOf(proofs: readonly SuiteProof[]): string {
  const rows = proofs.map(({ suite: { name, what }, cases, survived, lost, doubled }) => {
    const figures = [cases, survived, lost, doubled].map(figure);
    return `| ${[`**${name}**: ${what}`, ...figures].join(' | ')} |`;
  });
  return ['| suite | cases | survived | lost rows | doubled rows |', '|---|--:|--:|--:|--:|', ...rows].join('\n');
}

/** The part of a page between the marks of that name. */
export function shownIn(page: string, name = 'prove'): string {
  const [first, last] = marksOf(name);
  const [begin, end] = [page.indexOf(first), page.indexOf(last)];
  if (begin < 0 || end < begin) throw new Error(`the page has no ${first} … ${last}`);
  return page.slice(begin + first.length, end).trim();
}

export function withShown(page: string, text: string, name = 'prove'): string {
  const [first, last] = marksOf(name);
  return page.replace(`${first}\n${shownIn(page, name)}\n${last}`, () => `${first}\n${text}\n${last}`);
}

const marksOf = (name: string): [string, string] => [`<!-- ${name} -->`, `<!-- /${name} -->`];
