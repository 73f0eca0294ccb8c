import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Each link of the docs leads to an existing file and heading. */

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter(isPage)
    .map((name) => join('docs', name)),
];

function isPage(name: string): boolean {
  return name.endsWith('.md');
}

/** Links, images and reference definitions, outside of code. */
function linksOf(page: string): string[] {
  const prose = readFileSync(page, 'utf8')
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
}

const isOutside = (target: string): boolean => /^[a-z]+:/.test(target);

/** As GitHub and GitLab generate them: lower case, without punctuation, hyphens for blanks; duplicates are numbered. */
function anchorsOf(page: string): Set<string> {
  const prose = readFileSync(page, 'utf8').replace(/^```.*?^```$/gms, '');
  const anchors = new Set<string>();
  for (const [, title = ''] of prose.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-');
    let name = slug;
    for (let n = 1; anchors.has(name); n++) name = `${slug}-${n}`;
    anchors.add(name);
  }
  return anchors;
}

function faultOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(file)) return `${page}: ${target}: there is no ${file}`;
  if (anchor !== undefined && !anchorsOf(file).has(anchor)) return `${page}: ${target}: ${file} has no such heading`;
  return undefined;
}

describe('links', () => {
  it.each(PAGES.map((page) => [page]))('of %s lead somewhere', (page) => {
    const faults = linksOf(page)
      .filter((target) => !isOutside(target))
      .map((target) => faultOf(page, target));
    expect(faults.filter(Boolean)).toEqual([]);
  });

  it('to other hosts are encrypted', () => {
    const outside = PAGES.flatMap((page) => linksOf(page).filter(isOutside));
    expect(outside.length).toBeGreaterThan(10);
    expect(outside.filter((target) => !/^(https:|http:\/\/(127\.0\.0\.1|localhost)\b)/.test(target))).toEqual([]);
  });

  it('that are broken would be found', () => {
    expect(faultOf('README.md', 'docs/nowhere.md')).toContain('there is no docs/nowhere.md');
    expect(faultOf('docs/concepts.md', 'operations.md#nowhere')).toContain('docs/operations.md has no such heading');
    expect(faultOf('docs/concepts.md', 'operations.md#late-data')).toBeUndefined();
  });
});

it('every page is linked from the README', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) {
    for (const target of linksOf(page)) {
      const file = normalize(join(dirname(page), target.split('#')[0] ?? ''));
      if (PAGES.includes(file)) reached.add(file);
    }
  }
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
});

/** On npm, `tributary` is an unrelated package: a line that installs or imports it would run foreign code. */
it('no page installs or imports the unrelated npm package', () => {
  const { name } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string };
  expect(name).not.toBe('tributary');
  const lines = PAGES.flatMap((page) =>
    readFileSync(page, 'utf8')
      .split('\n')
      .map((line) => `${page}: ${line}`),
  );
  const foreign = /npm (?:install|i|add)\b[^`#]*\stributary(?![\w-])|from 'tributary'|import\('tributary'\)/;
  expect(lines.filter((line) => foreign.test(line))).toEqual([]);
  // Only from a clone, which the README has just made.
  const npx = lines.filter((line) => /npx tributary\b/.test(line) && !line.startsWith('README.md'));
  expect(npx).toEqual([]);
});

it('the README has the two commands of a newcomer, and CI runs its test command unchanged', () => {
  const commands = [...readFileSync('README.md', 'utf8').matchAll(/^```sh\n(npm ci && [^\n]+)\n```$/gm)];
  expect(commands.map(([, command]) => command)).toEqual(['npm ci && npm run demo', 'npm ci && npm test']);
  expect(readFileSync('.ci/run', 'utf8').split('\n')).toContain('npm ci && npm test');
});
