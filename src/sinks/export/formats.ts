import { STREAMS, type StreamName } from '../../model/streams.ts';
import { createParquetFile } from './parquet-file.ts';
import type { ByteTarget, RowFile } from './row-file.ts';
import { type CsvOptions, createCsvFile, createNdjsonFile } from './text-file.ts';

export const FORMATS = ['parquet', 'csv', 'ndjson'] as const;
export type Format = (typeof FORMATS)[number];

export function createRowFile(format: Format, name: StreamName, target: ByteTarget, options: CsvOptions): RowFile {
  const stream = STREAMS[name];
  if (format === 'parquet') return createParquetFile(stream, target);
  return format === 'ndjson' ? createNdjsonFile(stream, target) : createCsvFile(stream, target, options);
}
