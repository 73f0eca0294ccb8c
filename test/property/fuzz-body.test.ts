import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/answer.ts';

/** Bodies are decoded piece by piece for speed; what comes out must be what a decoder makes of the whole. */

/** Long enough that a body has several pieces, and with what stands at their edges: accents, emoji, marks, bytes that are no text. */
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
  it('gives the text of any bytes, whatever pieces it is decoded in', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const bytes = Buffer.concat(parts);
        expect(decode(bytes) === new TextDecoder().decode(bytes)).toBe(true);
      }),
    );
  });
});
