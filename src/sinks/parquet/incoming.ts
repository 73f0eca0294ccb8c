import type { Value } from '../../model/coerce.ts';
import type { Row } from '../../model/flatten.ts';
import { newestById } from '../newest-by-id.ts';
import type { Sanitizer } from '../sanitize-rows.ts';
import type { Incoming } from './survey.ts';
import { keyOf } from './whereabouts.ts';

/** The distinct events of a batch as rows of a file, with what the sink adds to them behind. */
export function readyRows(
  sanitizer: Sanitizer,
  source: string,
  rows: readonly Row[],
  behind: readonly Value[],
): Incoming[] {
  const distinct = newestById(rows);
  const ready: Incoming[] = [];
  const ids = distinct.entries();
  for (const values of sanitizer.all([...distinct.values()], [source])) {
    const [id, { at }] = ids.next().value as [string, Row];
    ready.push({ id, key: keyOf(id), at, row: [...values, ...behind] });
  }
  return ready;
}
