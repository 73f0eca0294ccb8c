import type { Value } from '../../model/coerce.ts';
import type { Kind } from '../../model/columns.ts';
import { encodeNumeric } from './numeric.ts';

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const CHUNK_BYTES = 256 * 1024;
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

  const text = (value: string, prefix?: number): void => {
    // Three bytes hold any UTF-16 unit.
    reserve(5 + value.length * 3);
    let at = used + 4;
    if (prefix !== undefined) at = chunk.writeUInt8(prefix, at);
    at += chunk.write(value, at, 'utf8');
    chunk.writeInt32BE(at - used - 4, used);
    used = at;
  };

  const int64 = (value: bigint): void => {
    reserve(12);
    chunk.writeInt32BE(8, used);
    used = chunk.writeBigInt64BE(value, used + 4);
  };

  const bytes = (value: Buffer): void => {
    reserve(4 + value.length);
    used = chunk.writeInt32BE(value.length, used);
    used += value.copy(chunk, used);
  };

  const boolean = (value: boolean): void => {
    reserve(5);
    chunk.writeInt32BE(1, used);
    used = chunk.writeUInt8(value ? 1 : 0, used + 4);
  };

  const encode: Record<Kind, (value: Value) => void> = {
    text: (value) => text(value as string),
    json: (value) => text(value as string, JSONB_VERSION),
    integer: (value) => int64(BigInt(value as number | bigint)),
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
      used = chunk.writeInt32BE(-1, used);
    },
    full: (): Buffer[] => (done.length > 0 ? done.splice(0) : done),
    rest: (): Buffer[] => [...done.splice(0), chunk.subarray(0, used)],
  };
}

/** Microseconds since 2000, exact: the fraction of a millisecond is rounded on its own. */
function micros(instant: number): bigint {
  const whole = Math.floor(instant);
  return BigInt(whole - EPOCH_2000_MS) * 1000n + BigInt(Math.round((instant - whole) * 1000));
}
