import type { Value } from '../../model/coerce.ts';
import type { Stream } from '../../model/streams.ts';
import {
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  MAGIC,
  type PlacedGroup,
} from '../parquet/format/index.ts';
import type { ByteTarget, RowFile } from './row-file.ts';

/** Rows that a group holds: they are in memory until it is full. */
const GROUP_ROWS = 20_000;

export function createParquetFile(stream: Stream, target: ByteTarget, compression: Compression = 'zstd'): RowFile {
  const columns: FileColumn[] = [
    ...stream.columns.map(({ name, kind, nullable }) => ({ name, kind, nullable })),
    { name: '_extra', kind: 'json', nullable: true },
  ];
  const groups: PlacedGroup[] = [];
  let waiting: Value[][] = [];
  let isBegun = false;

  const begin = async (): Promise<void> => {
    if (!isBegun) await target.write(MAGIC);
    isBegun = true;
  };
  const flush = async (): Promise<void> => {
    await begin();
    if (waiting.length === 0) return;
    const { bytes, ...group } = await encodeGroup(columns, waiting, compression);
    waiting = [];
    await target.write(bytes);
    groups.push(group);
  };

  return {
    async write(rows) {
      for (const { values, extra } of rows) {
        waiting.push([...values, extra]);
        if (waiting.length === GROUP_ROWS) await flush();
      }
    },
    async finish(metadata) {
      await flush();
      await target.write(encodeFooter(columns, groups, metadata));
      await target.finish();
    },
    abandon: () => target.abandon(),
  };
}
