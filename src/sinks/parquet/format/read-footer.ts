import { Fault } from '../../../model/errors.ts';
import { CREATED_BY, PLACES, placesText } from './footer.ts';
import { type Metadata, parseMetadata } from './hyparquet.ts';
import { readColumns, readEntries, readStoredGroup } from './read-metadata.ts';
import { foreign, torn } from './torn.ts';
import { type ByteSource, MAGIC, type ParquetFile, type StoredGroup } from './types.ts';

/** Enough for the footer of most files, so that one request brings it. */
const TAIL_BYTES = 128 * 1024;
/** The footer's length, four bytes, and MAGIC. */
const ENDING = 8;

/** What a file says of itself. Throws at what is torn, and at what somebody else wrote: neither may be merged or replaced. */
export async function readFooter(source: ByteSource): Promise<ParquetFile> {
  const footer = await readEnding(source);
  try {
    return readMetadata(source, parseMetadata(footer), source.size - footer.length);
  } catch (error) {
    if (error instanceof Fault) throw error;
    // Recovery: none; what is said of the file tells the person how to get its rows back.
    throw torn(source, 'its footer cannot be read', error);
  }
}

function readMetadata(source: ByteSource, metadata: Metadata, footerAt: number): ParquetFile {
  if (!metadata.created_by?.startsWith(WRITER)) throw foreign(source, `it says ${metadata.created_by ?? 'nothing'}`);
  const columns = readColumns(source, metadata);
  const groups = metadata.row_groups.map((group) => readStoredGroup(source, columns, group));
  const { [PLACES]: places, ...entries } = readEntries(metadata);
  if (places !== placesText(groups, footerAt)) throw torn(source, 'bytes are missing in it, or too many');
  checkPlaces(source, groups, footerAt);
  const rows = groups.reduce((sum, group) => sum + group.rows, 0);
  if (rows !== Number(metadata.num_rows)) throw torn(source, 'its groups do not add up to its rows');
  return { footerAt, columns, rows, metadata: entries, groups };
}

/** Without the version. */
const WRITER = CREATED_BY.replace(/\d+$/, '');

/** The footer with its length and MAGIC behind it. */
async function readEnding(source: ByteSource): Promise<Uint8Array> {
  const { size } = source;
  if (size < MAGIC.length + ENDING) throw torn(source, `it has ${size} bytes`);
  const [head, tail] = await Promise.all([
    source.read(0, MAGIC.length),
    source.read(Math.max(0, size - TAIL_BYTES), size),
  ]);
  if (!isMagic(head) || !isMagic(tail.subarray(-MAGIC.length))) throw torn(source, 'it does not begin and end as one');
  const length = new DataView(tail.buffer, tail.byteOffset + tail.length - ENDING).getUint32(0, true) + ENDING;
  if (length > size - MAGIC.length) throw torn(source, 'its footer would be longer than the file');
  return length <= tail.length ? tail.subarray(-length) : source.read(size - length, size);
}

const isMagic = (bytes: Uint8Array): boolean => Buffer.compare(bytes, MAGIC) === 0;

/** Between MAGIC and the footer, in any order and with room between them, but each in a place of its own. */
function checkPlaces(source: ByteSource, groups: readonly StoredGroup[], footerAt: number): void {
  let at = MAGIC.length;
  for (const { start, end } of [...groups].sort((a, b) => a.start - b.start)) {
    if (start < at) throw torn(source, 'its groups overlap');
    at = end;
  }
  if (at > footerAt) throw torn(source, 'its groups reach into its footer');
}
