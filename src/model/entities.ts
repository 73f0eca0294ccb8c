import type { Column } from './columns.ts';
import { STREAM_NAMES, STREAMS, type Stream } from './streams.ts';

/** What events refer to and the service joins to them: one row each, as last seen. */
export interface Entity {
  name: 'links' | 'customers';
  doc: string;
  key: string;
  columns: readonly Column[];
}

export const ENTITIES: readonly Entity[] = [
  entity('links', 'link_', 'One row per short link, as it was when an event of it was last read.'),
  entity('customers', 'customer_', 'One row per customer, as last seen with a lead or sale.'),
];

/** The entities that a stream's events refer to. */
export const entitiesOf = (stream: Stream): Entity[] =>
  ENTITIES.filter(({ key }) => stream.columns.some(({ name }) => name === key));

/**
 * What a reading must know of a customer to count. A deleted customer comes as a placeholder that knows none of this, and
 * must not overwrite the real one.
 */
export const CUSTOMER_KNOWLEDGE = ['customer_email', 'customer_avatar', 'customer_country'] as const;

function entity(name: Entity['name'], prefix: string, doc: string): Entity {
  const all = new Map(STREAM_NAMES.flatMap((stream) => STREAMS[stream].columns.map((column) => [column.name, column])));
  return {
    name,
    doc,
    key: `${prefix}id`,
    columns: [...all.values()].filter((column) => column.name.startsWith(prefix)),
  };
}
