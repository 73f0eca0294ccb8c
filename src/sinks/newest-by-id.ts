import { storableText } from '../cursor/storable.ts';
import type { Row } from '../model/flatten.ts';

/** Of one event that came twice the newer counts; at the same time, the one that was read later. */
export function newestById(rows: readonly Row[]): Map<string, Row> {
  const newest = new Map<string, Row>();
  for (const row of rows) {
    // By the id as it will be stored: two that differ only in what cannot be stored are one key there.
    const id = storableText(row.id);
    const before = newest.get(id);
    if (!before || row.at >= before.at) newest.set(id, row);
  }
  return newest;
}
