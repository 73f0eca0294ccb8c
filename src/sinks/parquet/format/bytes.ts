import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';

export { writeRleBitPackedHybrid as writeRuns } from 'hyparquet-writer/src/encoding.js';
export { writePlain } from 'hyparquet-writer/src/plain.js';
export { snappyCompress } from 'hyparquet-writer/src/snappy.js';
/** Fields by number; numbers are 32 bits wide, BigInts 64. */
export { serializeTCompactProtocol as writeThrift } from 'hyparquet-writer/src/thrift.js';

/** A growing byte buffer: hyparquet's, plus int64 and text. Everything in Parquet is little-endian. */
export class Bytes extends ByteWriter {
  #whole = Buffer.from(this.buffer);

  /** The upper half is signed. */
  int64(high: number, low: number): void {
    this.appendInt32(low | 0);
    this.appendInt32(high);
  }

  /** The length in four bytes, then the text. Half a surrogate pair becomes U+FFFD. */
  text(value: string): void {
    // Three bytes hold any UTF-16 unit.
    this.ensure(4 + value.length * 3);
    if (this.#whole.buffer !== this.buffer) this.#whole = Buffer.from(this.buffer);
    const size = this.#whole.write(value, this.index + 4, 'utf8');
    this.appendInt32(size);
    this.index += size;
    this.offset += size;
  }
}
