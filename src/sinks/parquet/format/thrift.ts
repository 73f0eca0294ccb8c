const FIRST_SIZE = 1024;

/** A growing byte buffer. Everything in Parquet is little-endian. */
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

  /** A varint: seven bits a byte, least significant first; for whole numbers up to 2^53. */
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

  /** The length in four bytes, then the text. Half a surrogate pair becomes U+FFFD. */
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

  /** The bytes written so far; valid only until the next write. */
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

/**
 * The part of Thrift's compact protocol that Parquet's headers and footer use. A value knows its type and how to
 * write itself; a struct is its fields by number, and those that are undefined are left out.
 */
export interface Thrift {
  type: number;
  write(out: Bytes): void;
}

export type Fields = Readonly<Record<number, Thrift | undefined>>;

const TRUE = 1;
const FALSE = 2;
const I32 = 5;
const I64 = 6;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;
/** Longer lists, and fields further apart, write the number separately. */
const SHORT = 15;

const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);

export const i32 = (value: number): Thrift => ({ type: I32, write: (out) => out.varint(zigzag(value)) });
export const i64 = (value: number): Thrift => ({ type: I64, write: (out) => out.varint(zigzag(value)) });
/** Only as a field, where the type is the value. */
export const bool = (value: boolean): Thrift => ({ type: value ? TRUE : FALSE, write: () => {} });
export const text = (value: string): Thrift => binary(Buffer.from(value, 'utf8'));

export function binary(value: Uint8Array): Thrift {
  return {
    type: BINARY,
    write(out) {
      out.varint(value.length);
      out.append(value);
    },
  };
}

export function list(items: readonly Thrift[]): Thrift {
  const type = items[0]?.type ?? STRUCT;
  return {
    type: LIST,
    write(out) {
      if (items.length < SHORT) {
        out.uint8((items.length << 4) | type);
      } else {
        out.uint8((SHORT << 4) | type);
        out.varint(items.length);
      }
      for (const item of items) item.write(out);
    },
  };
}

export function struct(fields: Fields): Thrift {
  return {
    type: STRUCT,
    write(out) {
      let last = 0;
      // Integer keys of an object are in ascending order.
      for (const [key, value] of Object.entries(fields)) {
        if (value === undefined) continue;
        const id = Number(key);
        // In Parquet's structs, consecutive field ids differ by at most fifteen.
        out.uint8(((id - last) << 4) | value.type);
        value.write(out);
        last = id;
      }
      out.uint8(0);
    },
  };
}

export function encodeThrift(value: Thrift): Uint8Array {
  const out = new Bytes();
  value.write(out);
  return out.view();
}
