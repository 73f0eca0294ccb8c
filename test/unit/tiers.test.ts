import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ALONE, DEEP, SAMPLED } from '../tiers.ts';

const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => `test/${file}`);

/** A deep test that was renamed would come into the first tier, and nobody would notice but by the clock. */
it.each([...DEEP, ...ALONE, ...SAMPLED])('%s is there', (pattern) => {
  const name = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
  expect(files.filter((file) => name.test(file))).not.toEqual([]);
});
