import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const dir = mkdtempSync(join(tmpdir(), 'tributary-licences-'));
afterAll(() => rmSync(dir, { recursive: true }));

function check(...args: string[]): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/check-licences.mjs', ...args], {
    encoding: 'utf8',
  });
  return { code: status, text: stdout + stderr };
}

it('every production dependency has a licence that permits use and distribution', () => {
  expect(check()).toEqual({ code: 0, text: expect.stringMatching(/^\d{2,} production packages/) });
});

it('names a package without one, and ignores development tools', () => {
  const packages = {
    '': {},
    'node_modules/a/node_modules/copyleft': { license: 'AGPL-3.0' },
    'node_modules/nothing': {},
    'node_modules/tool': { license: 'GPL-3.0', dev: true },
    'node_modules/fine': { license: 'MIT' },
  };
  writeFileSync(join(dir, 'lock.json'), JSON.stringify({ packages }));
  const { code, text } = check(join(dir, 'lock.json'));
  expect(code).toBe(1);
  expect(text.split('\n').slice(0, 3)).toEqual([
    'copyleft: AGPL-3.0',
    'nothing: no licence',
    expect.stringMatching(/^next: /),
  ]);
});
