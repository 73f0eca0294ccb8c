import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/answer.ts';

/** Bodies are decoded in pieces for speed; the result must equal decoding at once. */

/** Long enough for several pieces, with accents, emoji, marks and invalid bytes at their boundaries. */
const run = (bytes: Uint8Array): fc.Arbitrary<Buffer> =>
  fc.integer({ min: 1, max: 6000 }).map((times) => Buffer.concat(Array<Uint8Array>(times).fill(bytes)));
const part = fc.oneof(
  run(Buffer.from('a')),
  run(Buffer.from('ä')),
  run(Buffer.from('日')),
  run(Buffer.from('😀')),
  run(Buffer.from('\ufeff')),
  run(Buffer.from([0x80])),
  run(Buffer.from([0xf0, 0x9f])),
  fc.uint8Array({ maxLength: 20 }),
);

describe('decode', () => {
  it('gives the same text as decoding at once, for any bytes and pieces', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const bytes = Buffer.concat(parts);
        expect(decode(bytes) === new TextDecoder().decode(bytes)).toBe(true);
      }),
    );
  });
});
