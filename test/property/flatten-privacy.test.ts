import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFlatten } from '../../src/model/flatten.ts';
import type { Privacy } from '../../src/model/privacy.ts';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { stable } from '../support/flat.ts';

const SECRET = 'hunter2';

/** The secret in any shape of a value. */
const { shape } = fc.letrec((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(SECRET, `${SECRET}!`, `x ${SECRET}`),
    fc.array(tie('shape'), { minLength: 1, maxLength: 2 }),
    fc.dictionary(fc.string(), tie('shape'), { minKeys: 1, maxKeys: 2 }),
  ),
}));

/** A holder of `key: secret`: an object, or an object in lists and in other objects. */
function holder(key: string): fc.Arbitrary<unknown> {
  const plain = fc.tuple(shape, fc.string()).map(([value, id]) => ({ id, [key]: value }));
  const { nested } = fc.letrec((tie) => ({
    nested: fc.oneof(
      { depthSize: 'small' },
      plain,
      fc.array(tie('nested'), { minLength: 1, maxLength: 2 }),
      // Not under the name of a column: text in `link.key` is a slug, whatever its content.
      fc.tuple(fc.string(), tie('nested')).map(([name, inner]) => ({ [`~${name}`]: inner })),
      plain.map((object) => JSON.stringify(object)),
    ),
  }));
  return nested as fc.Arbitrary<unknown>;
}

const HIDE: readonly [parent: string, key: string, privacy: Privacy][] = [
  ['link', 'password', { linkPassword: 'drop', ip: 'keep', customer: 'keep' }],
  ['link', 'password', { linkPassword: 'hash', ip: 'keep', customer: 'keep' }],
  ['click', 'ip', { linkPassword: 'drop', ip: 'drop', customer: 'keep' }],
  ['click', 'ip', { linkPassword: 'drop', ip: 'hash', customer: 'keep' }],
  ['click', 'ip', { linkPassword: 'drop', ip: 'truncate', customer: 'keep' }],
  ['customer', 'name', { linkPassword: 'drop', ip: 'keep', customer: 'drop' }],
  ['customer', 'email', { linkPassword: 'drop', ip: 'keep', customer: 'hash' }],
  ['customer', 'avatar', { linkPassword: 'drop', ip: 'keep', customer: 'drop' }],
];

describe.each(STREAM_NAMES)('personal data on %s', (stream) => {
  it.each(HIDE)('leaves no trace of %s.%s in the row, in any shape, with %j', (parent, key, privacy) => {
    const flatten = createFlatten(STREAMS[stream], { ...privacy, salt: 'a salt of the tests' });
    fc.assert(
      fc.property(holder(key), shape, (hidden, alias) => {
        const record = {
          timestamp: 1_705_314_600,
          eventId: 'e1',
          [parent]: hidden,
          ...(key === 'ip' && { ip: alias }),
        };
        const { values, extra } = flatten(record);
        expect(stable([values, extra])).not.toContain(SECRET);
      }),
    );
  });
});
