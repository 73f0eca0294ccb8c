import { expect, it } from 'vitest';
import { type Config, parseConfig } from '../../src/config/index.ts';
import { ConfigError } from '../../src/model/errors.ts';

const SALT = '0123456789abcdef';
const privacyOf = (text: string, env: Record<string, string> = {}): Config['privacy'] =>
  parseConfig(`privacy: ${text}`, 'f.yaml', env).config.privacy;

function faultsOf(text: string, env: Record<string, string> = {}): readonly string[] {
  try {
    privacyOf(text, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
  }
  throw new Error('it was accepted');
}

it.each(['linkPassword', 'ip', 'customer'])('%s: hash needs a salt', (key) => {
  const [fault, ...more] = faultsOf(`{ ${key}: hash }`);
  expect(fault).toMatch(/^f\.yaml:1:1 privacy\.salt: is missing: hash needs a secret \(openssl rand -hex 32/);
  expect(more).toEqual([]);
  expect(privacyOf(`{ ${key}: hash, salt: "\${SALT}" }`, { SALT })).toMatchObject({ [key]: 'hash', salt: SALT });
});

it('an empty salt counts as none, and a short one is refused without being quoted', () => {
  expect(faultsOf(`{ ip: hash, salt: "\${S:-}" }`)).toEqual([expect.stringContaining('salt: is missing')]);
  expect(faultsOf('{ ip: hash, salt: hunter2 }')).toEqual([
    'f.yaml:1:22 privacy.salt: must have at least 16 characters',
  ]);
});

it('is reported together with other faults', () => {
  expect(faultsOf('{ ip: maybe, customer: hash }')).toHaveLength(2);
});

it('no other setting needs a salt', () => {
  expect(privacyOf('{ ip: truncate, customer: drop }')).toEqual({
    linkPassword: 'drop',
    ip: 'truncate',
    customer: 'drop',
  });
  expect(privacyOf(`{ salt: "\${S:-}" }`)).toEqual({ linkPassword: 'drop', ip: 'keep', customer: 'keep' });
});
