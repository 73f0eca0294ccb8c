import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/** The page is plain files without a compiler, so these tests check the sources. */
const FOLDER = 'src/http/page';
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.\w+$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(FOLDER, file), 'utf8') }));
const scripts = files.filter(({ file }) => file.endsWith('.js'));
const IMPORT = /^import\s(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]/gm;

const saying = (pattern: RegExp): string[] => files.filter(({ text }) => pattern.test(text)).map(({ file }) => file);

describe('the page', () => {
  it('agrees with the types of the API', () => {
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.page.json'], {
      encoding: 'utf8',
    });
  });

  it('inserts text, never markup, and has no inline scripts or styles', () => {
    expect(saying(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function/)).toEqual(
      [],
    );
    expect(saying(/<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle="|\son\w+="/)).toEqual([]);
  });

  it('loads nothing from other hosts', () => {
    const elsewhere = files.flatMap(({ file, text }) =>
      [...text.matchAll(/(?:https?:)?\/\/[\w.-]+\.[a-z]{2,}[^\s'"]*/g)].map(([url]) => `${file} ${url}`),
    );
    expect(elsewhere.filter((each) => !each.endsWith('http://www.w3.org/2000/svg'))).toEqual([]);
  });

  it('has short files, each of them used, and no cycles', () => {
    expect(files.filter(({ text }) => text.split('\n').length > 300).map(({ file }) => file)).toEqual([]);
    const graph = new Map(scripts.map(({ file, text }) => [file, importsOf(file, text)]));
    const reached = new Set<string>();
    const walk = (file: string, path: readonly string[]): void => {
      expect(path, `a circle at ${file}`).not.toContain(file);
      reached.add(file);
      for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    };
    walk('main.js', []);
    const page = files.find(({ file }) => file === 'index.html')?.text ?? '';
    const unused = files.map(({ file }) => file).filter((file) => !reached.has(file) && !page.includes(`"${file}"`));
    expect(unused).toEqual(['index.html']);
  });
});

function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, to]) => normalize(join(dirname(file), to ?? '')));
}
