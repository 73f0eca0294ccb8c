import { storableText } from '../cursor/storable.ts';
import type { Row } from '../model/flatten.ts';

/** Of one event that came twice the last reading counts, whatever its time. By the id as it will be stored. */
export const newestById = (rows: readonly Row[]): Map<string, Row> =>
  new Map(rows.map((row) => [storableText(row.id), row]));
