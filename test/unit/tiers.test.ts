import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ALONE, DEEP, SAMPLED } from '../tiers.ts';

const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => `test/${file}`);

/** The pattern of a renamed deep test would no longer match, and move it to the first tier. */
it.each([...DEEP, ...ALONE, ...SAMPLED])('%s exists', (pattern) => {
  const name = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
  expect(files.filter((file) => name.test(file))).not.toEqual([]);
});
