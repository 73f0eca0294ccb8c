const FIRST_SIZE = 1024;

/** Bytes that grow at the end. Everything in Parquet is little-endian. */
export class Bytes {
  #buffer = Buffer.allocUnsafe(FIRST_SIZE);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  uint8(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  /** Seven bits a byte, the smallest first; for whole numbers up to 2^53. */
  varint(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#length++] = rest;
  }

  int32(value: number): void {
    this.#reserve(4);
    this.#length = this.#buffer.writeInt32LE(value, this.#length);
  }

  /** The upper half is signed. */
  int64(high: number, low: number): void {
    this.#reserve(8);
    this.#buffer.writeInt32LE(low | 0, this.#length);
    this.#length = this.#buffer.writeInt32LE(high, this.#length + 4);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#length = this.#buffer.writeDoubleLE(value, this.#length);
  }

  /** The length in four bytes, then the text. What is half a surrogate pair becomes U+FFFD. */
  text(value: string): void {
    // Three bytes hold any UTF-16 unit.
    this.#reserve(4 + value.length * 3);
    const size = this.#buffer.write(value, this.#length + 4, 'utf8');
    this.#buffer.writeInt32LE(size, this.#length);
    this.#length += 4 + size;
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** What was written; it stays valid only as long as nothing more is. */
  view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    larger.set(this.view());
    this.#buffer = larger;
  }
}
