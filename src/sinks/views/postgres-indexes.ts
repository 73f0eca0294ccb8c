/** The UTC day of an event. An index on it stores each day once and takes seven bytes per row. */
export const utcDate = (alias?: string): string =>
  `(${alias === undefined ? '' : `${alias}.`}"timestamp" at time zone 'UTC')::date`;

export interface Index {
  /** The suffix of the index name, after the table's name. */
  name: string;
  on: string;
  using?: 'brin' | 'hash';
  /** Included columns, for index-only scans of the views. */
  include?: string;
}

export const indexOn = ({ on, using, include }: Index): string =>
  `${using ? `using ${using} ` : ''}(${on})${include ? ` include (${include})` : ''}`;

/** Indexes that a config may request: they make reports fast and every load slower (docs/warehouse.md has the figures). */
export const INDEXES = ['link', 'customer', 'click', 'synced'] as const;
export type IndexName = (typeof INDEXES)[number];

const OPTIONAL: Readonly<Record<IndexName, Omit<Index, 'name'> & { needs: string }>> = {
  /** For the daily views and the funnels by link, in the order of their groups, so that nothing is sorted. */
  link: { needs: 'link_id', on: `link_id, (${utcDate()}), _source`, include: '"timestamp", _missing_since' },
  /** For the funnels, by customer. */
  customer: {
    needs: 'customer_id',
    on: '_source, customer_id, "timestamp"',
    include: 'click_id, link_id, click_timestamp, _missing_since',
  },
  /** From a click to its leads and sales; the click itself has it as its key. A hash index, because queries only test equality. */
  click: { needs: 'customer_id', on: 'click_id', using: 'hash' },
  /** For incremental models. Rows are written in the order of this column, so a BRIN index is tiny. */
  synced: { needs: 'event_id', on: '_synced_at', using: 'brin' },
};

/** The requested indexes whose columns the table has, always in the same order. */
export const optionalIndexes = (asked: readonly IndexName[], columns: ReadonlyArray<{ name: string }>): Index[] =>
  INDEXES.filter((name) => asked.includes(name)).flatMap((name) => {
    const { needs, ...index } = OPTIONAL[name];
    return columns.some((column) => column.name === needs) ? [{ name, ...index }] : [];
  });
