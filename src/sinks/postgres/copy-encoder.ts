import type { Value } from '../../model/coerce.ts';
import type { Kind } from '../../model/columns.ts';
import { encodeNumeric } from './numeric.ts';

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const CHUNK_BYTES = 256 * 1024;
const SHORT = 48;
const JSONB_VERSION = 1;
const EPOCH_2000_MS = 946_684_800_000;

/**
 * Rows in Postgres' binary COPY format, chunk by chunk, so that the server loads one while the next is made. Binary, because
 * text COPY must escape tabs, newlines, backslashes and `\.`, and a slip there ends the data in silence; and because it is
 * twice as fast to load. Values are such as Postgres can hold, JSON as text: see `storable-row.ts`.
 */
export function* encodeCopy(kinds: readonly Kind[], rows: Iterable<readonly Value[]>): Generator<Buffer> {
  yield HEADER;
  const writer = createWriter();
  const encoders = kinds.map((kind) => writer.encode[kind]);
  for (const values of rows) {
    writer.int16(kinds.length);
    for (let i = 0; i < encoders.length; i++) {
      const value = values[i] ?? null;
      if (value === null) writer.nothing();
      else encoders[i]?.(value);
    }
    yield* writer.full();
  }
  yield* writer.rest();
  yield TRAILER;
}

function createWriter() {
  const done: Buffer[] = [];
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let used = 0;

  const reserve = (bytes: number): void => {
    if (used + bytes <= chunk.length) return;
    if (used > 0) done.push(chunk.subarray(0, used));
    chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, bytes));
    used = 0;
  };

  const int32 = (value: number): void => {
    chunk[used++] = value >>> 24;
    chunk[used++] = value >>> 16;
    chunk[used++] = value >>> 8;
    chunk[used++] = value;
  };

  const text = (value: string, prefix?: number): void => {
    // Three bytes hold any UTF-16 unit.
    reserve(5 + value.length * 3);
    const start = used;
    used += 4;
    if (prefix !== undefined) chunk[used++] = prefix;
    if (!shortAscii(value)) used += chunk.write(value, used, 'utf8');
    const end = used;
    used = start;
    int32(end - start - 4);
    used = end;
  };

  /** Most texts are short and plain; handing each over to the native writer costs more than copying it. */
  const shortAscii = (value: string): boolean => {
    const { length } = value;
    if (length > SHORT) return false;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) return false;
      chunk[used + i] = unit;
    }
    used += length;
    return true;
  };

  /** BigInt is slow: what a double holds exactly is cut in two by arithmetic. */
  const int64 = (value: number | bigint): void => {
    reserve(12);
    int32(8);
    if (typeof value === 'bigint') {
      used = chunk.writeBigInt64BE(value, used);
    } else {
      const high = Math.floor(value / 2 ** 32);
      int32(high);
      int32(value - high * 2 ** 32);
    }
  };

  const bytes = (value: Buffer): void => {
    reserve(4 + value.length);
    int32(value.length);
    used += value.copy(chunk, used);
  };

  const boolean = (value: boolean): void => {
    reserve(5);
    int32(1);
    chunk[used++] = value ? 1 : 0;
  };

  const encode: Record<Kind, (value: Value) => void> = {
    text: (value) => text(value as string),
    json: (value) => text(value as string, JSONB_VERSION),
    integer: (value) => int64(value as number | bigint),
    number: (value) => bytes(encodeNumeric(value as number | bigint)),
    timestamp: (value) => int64(micros(value as number)),
    boolean: (value) => boolean(value === true),
  };

  return {
    encode,
    int16(value: number): void {
      reserve(2);
      used = chunk.writeInt16BE(value, used);
    },
    nothing(): void {
      reserve(4);
      int32(-1);
    },
    full: (): Buffer[] => (done.length > 0 ? done.splice(0) : done),
    rest: (): Buffer[] => [...done.splice(0), chunk.subarray(0, used)],
  };
}

/** Microseconds since 2000, exact: the fraction of a millisecond is rounded on its own. */
function micros(instant: number): number | bigint {
  const whole = Math.floor(instant);
  const rest = Math.round((instant - whole) * 1000);
  const quick = (whole - EPOCH_2000_MS) * 1000 + rest;
  return Number.isSafeInteger(quick) ? quick : BigInt(whole - EPOCH_2000_MS) * 1000n + BigInt(rest);
}
