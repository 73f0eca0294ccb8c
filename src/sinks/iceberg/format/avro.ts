import { randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import avsc from 'avsc';

/** We write the container ourselves: Iceberg keeps field ids as attributes in the schema, and avsc drops those. */
const MAGIC = Buffer.from('Obj\x01', 'latin1');
const SYNC_BYTES = 16;

/** A number if exact, else a bigint: snapshot ids of other writers use 63 bits. */
export type Long = number | bigint;

const LONG = avsc.types.LongType.__with({
  fromBuffer(bytes: Buffer): Long {
    const value = bytes.readBigInt64LE();
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  },
  toBuffer(value: Long): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(value));
    return bytes;
  },
  fromJSON: (value: unknown) => value,
  toJSON: (value: Long) => Number(value),
  isValid: (value: unknown) => typeof value === 'bigint' || Number.isSafeInteger(value),
  compare: (a: Long, b: Long) => (a < b ? -1 : a > b ? 1 : 0),
});

const typeOf = (schema: unknown): avsc.Type =>
  avsc.Type.forSchema(schema as avsc.Schema, { registry: { long: LONG }, wrapUnions: false } as object);

const HEADER = typeOf({ type: 'map', values: 'bytes' });
const COUNT = avsc.Type.forSchema('int');

export const optional = (type: unknown) => ['null', type];
/** A field with Iceberg's field id, by which readers identify it. */
export const field = (id: number, name: string, type: unknown) =>
  Array.isArray(type) ? { name, type, default: null, 'field-id': id } : { name, type, 'field-id': id };

export function encodeAvro(schema: unknown, metadata: Readonly<Record<string, string>>, records: readonly object[]) {
  const type = typeOf(schema);
  const sync = randomBytes(SYNC_BYTES);
  const header = { ...metadata, 'avro.schema': JSON.stringify(schema), 'avro.codec': 'deflate' };
  const entries = Object.fromEntries(Object.entries(header).map(([key, value]) => [key, Buffer.from(value)]));
  const parts = [MAGIC, HEADER.toBuffer(entries), sync];
  if (records.length > 0) {
    const packed = deflateRawSync(Buffer.concat(records.map((record) => type.toBuffer(record))));
    parts.push(COUNT.toBuffer(records.length), COUNT.toBuffer(packed.length), packed, sync);
  }
  return Buffer.concat(parts);
}

/** Decodes by the schema in the file: other writers' records have other fields under the same names. */
export function decodeAvro<T>(bytes: Buffer) {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new RangeError('it lacks the magic bytes of an Avro file');
  const head = HEADER.decode(bytes, MAGIC.length) as { value: Record<string, Buffer>; offset: number };
  const metadata = Object.fromEntries(Object.entries(head.value).map(([key, value]) => [key, value.toString('utf8')]));
  const type = typeOf(JSON.parse(metadata['avro.schema'] ?? 'null'));
  const unpack = unpackerOf(metadata['avro.codec'] ?? 'null');
  const records: T[] = [];
  let at = head.offset + SYNC_BYTES;
  while (at < bytes.length) {
    const count = COUNT.decode(bytes, at) as { value: number; offset: number };
    const size = COUNT.decode(bytes, count.offset) as { value: number; offset: number };
    const end = size.offset + size.value;
    if (count.offset < 0 || size.offset < 0 || end + SYNC_BYTES > bytes.length) throw new RangeError('it is cut short');
    const block = unpack(bytes.subarray(size.offset, end));
    for (let i = 0, offset = 0; i < count.value; i++) {
      const record = type.decode(block, offset) as { value: T; offset: number };
      if (record.offset < 0) throw new RangeError('a record is cut short');
      records.push(record.value);
      offset = record.offset;
    }
    at = end + SYNC_BYTES;
  }
  return { metadata, records };
}

function unpackerOf(codec: string): (bytes: Buffer) => Buffer {
  if (codec === 'null') return (bytes) => bytes;
  if (codec === 'deflate') return (bytes) => inflateRawSync(bytes);
  throw new RangeError(`its codec ${codec} is not supported`);
}
