import type { Column } from '../model/columns.ts';
import type { Stream } from '../model/streams.ts';

/**
 * What makes an event "changed", for every sink alike: a field of the event itself. Links and customers are joined by the service
 * at the time of reading, and a deprecated column only repeats another.
 */
export const ownColumns = (stream: Stream): Column[] =>
  stream.columns.filter((column) => !column.volatile && !column.deprecated);

/** The keys of a record that hold what is joined: `link`, `customer`, and aliases such as `domain`. */
export const joinedKeys = (stream: Stream): string[] => [
  ...new Set(
    stream.columns.filter((c) => c.volatile).flatMap((c) => c.from.map(({ path }) => path.split('.')[0] ?? '')),
  ),
];
