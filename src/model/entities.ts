import type { Column } from './columns.ts';
import { STREAM_NAMES, STREAMS, type Stream } from './streams.ts';

/** What events refer to and the service joins to them: one row each, as last seen. */
export interface Entity {
  name: 'links' | 'customers';
  doc: string;
  key: string;
  columns: readonly Column[];
  /**
   * What a reading must know at least one of to count: a deleted customer comes as a placeholder, an event of a deleted link
   * with nothing but its id, and neither must overwrite the real one.
   */
  knowledge: readonly string[];
}

/** What the placeholder of a deleted customer does not know. */
export const CUSTOMER_KNOWLEDGE: readonly string[] = ['customer_email', 'customer_avatar', 'customer_country'];

export const ENTITIES: readonly Entity[] = [
  entity('links', 'link_', 'One row per short link, as it was when an event of it was last read.', [
    'link_url',
    'link_short_link',
  ]),
  entity('customers', 'customer_', 'One row per customer, as last seen with a lead or sale.', CUSTOMER_KNOWLEDGE),
];

/** The entities that a stream's events refer to. */
export const entitiesOf = (stream: Stream): Entity[] =>
  ENTITIES.filter(({ key }) => stream.columns.some(({ name }) => name === key));

function entity(name: Entity['name'], prefix: string, doc: string, knowledge: readonly string[]): Entity {
  const all = new Map(STREAM_NAMES.flatMap((stream) => STREAMS[stream].columns.map((column) => [column.name, column])));
  return {
    name,
    doc,
    key: `${prefix}id`,
    columns: [...all.values()].filter((column) => column.name.startsWith(prefix)),
    knowledge,
  };
}
