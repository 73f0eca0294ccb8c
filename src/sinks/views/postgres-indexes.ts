/** The UTC day of an event. An index on it holds each day once: seven bytes a row. */
export const utcDate = (alias?: string): string =>
  `(${alias === undefined ? '' : `${alias}.`}"timestamp" at time zone 'UTC')::date`;

export interface Index {
  /** What follows the table's name in its own. */
  name: string;
  on: string;
  using?: 'brin' | 'hash';
  /** Columns that ride along, so that a view is answered by the index alone. */
  include?: string;
}

export const indexOn = ({ on, using, include }: Index): string =>
  `${using ? `using ${using} ` : ''}(${on})${include ? ` include (${include})` : ''}`;

/** Indexes that a config asks for: they make reports fast and every load slower (docs/warehouse.md has the figures). */
export const INDEXES = ['link', 'customer', 'click', 'synced'] as const;
export type IndexName = (typeof INDEXES)[number];

const OPTIONAL: Readonly<Record<IndexName, Omit<Index, 'name'> & { needs: string }>> = {
  /** What the daily views and the funnels ask of a link, in the order of their groups: nothing is left to sort. */
  link: { needs: 'link_id', on: `link_id, (${utcDate()}), _source`, include: '"timestamp", _missing_since' },
  /** What the funnels ask of a customer. */
  customer: {
    needs: 'customer_id',
    on: '_source, customer_id, "timestamp"',
    include: 'click_id, link_id, click_timestamp, _missing_since',
  },
  /** From a click to its leads and sales; of a click itself it is the key. By hash: equality is all that is asked. */
  click: { needs: 'customer_id', on: 'click_id', using: 'hash' },
  /** For incremental models. Rows are written in the order of this column, so that its summary is next to nothing. */
  synced: { needs: 'event_id', on: '_synced_at', using: 'brin' },
};

/** Those that the table has the columns for, always in one order. */
export const optionalIndexes = (asked: readonly IndexName[], columns: ReadonlyArray<{ name: string }>): Index[] =>
  INDEXES.filter((name) => asked.includes(name)).flatMap((name) => {
    const { needs, ...index } = OPTIONAL[name];
    return columns.some((column) => column.name === needs) ? [{ name, ...index }] : [];
  });
