import { DIMENSIONS, type Dimension, placeOf, viewBy } from './dimensions.ts';
import { currencyOf, majorPerMinor } from './money.ts';
import type { Dialect, View } from './view.ts';

/** Counts have no currency. Amounts are in separate views, by currency, because amounts in two currencies are never added. */
export const dailyViews = (dialect: Dialect): View[] =>
  DIMENSIONS.flatMap((dimension) => [performanceView(dialect, dimension), revenueView(dialect, dimension)]);

const DAY = 'Day, in UTC.';

function performanceView(dialect: Dialect, dimension: Dimension): View {
  const { name } = dimension;
  const counts = ['clicks', 'leads', 'sales'] as const;
  const perStream = counts.map((stream) => {
    const numbers = counts.map((each) => `${each === stream ? 'count(*)' : '0'} as ${each}`).join(', ');
    return eventsOf(dialect, stream, dimension, numbers, 3);
  });
  const sums = counts.map((each) => `sum(p.${each})::bigint as ${each}`).join(', ');
  return {
    name: `daily_${name}_performance`,
    doc: `Clicks, leads and sales per ${name} and UTC day: one row each. Amounts are in daily_${name}_revenue.`,
    reads: ['clicks', 'leads', 'sales', 'links', 'coverage'],
    ...viewBy(dialect, dimension, {
      date: DAY,
      columns: {
        clicks: 'Clicks on that day.',
        leads: 'Leads on that day.',
        sales: 'Sales on that day, in all currencies.',
      },
      days: placed(dialect, dimension, { rows: perStream.join(' union all '), group: [], sums }),
    }),
  };
}

function revenueView(dialect: Dialect, dimension: Dimension): View {
  const { name } = dimension;
  const rows = eventsOf(
    dialect,
    'sales',
    dimension,
    `${currencyOf('e.sale_currency')} as sale_currency, count(*) as sales, sum(e.sale_amount) as sale_amount`,
    4,
  );
  const sums = 'sum(p.sales)::bigint as sales, sum(p.sale_amount)::bigint as sale_amount';
  return {
    name: `daily_${name}_revenue`,
    doc: `Sales and their value per ${name}, UTC day and currency. Never add two currencies.`,
    reads: ['sales', 'links', 'coverage'],
    ...viewBy(dialect, dimension, {
      date: DAY,
      columns: {
        sale_currency: 'Currency, ISO 4217, in lower case. Null: the service named none.',
        sales: 'Sales on that day in this currency.',
        sale_amount: 'Value of those sales in minor units of their currency: cents, or whole yen.',
        revenue:
          'Value of those sales in their currency itself: dollars, yen, dinars. Of sales without a currency, a hundredth of sale_amount.',
      },
      from: { revenue: `d.sale_amount * ${majorPerMinor('d.sale_currency')}` },
      days: placed(dialect, dimension, { rows, group: ['p.sale_currency'], sums }),
    }),
  };
}

/** Grouped by position and alias: a field of the service may become a column called date, to which a bare name would refer. */
function eventsOf({ table, utcDate }: Dialect, stream: string, { event }: Dimension, numbers: string, keys: number) {
  const group = Array.from({ length: keys }, (_, i) => i + 1).join(', ');
  return `
      select e._source as source, ${utcDate('e')} as date, ${event === 'link_id' ? 'e.link_id' : `nullif(e.${event}, '')`} as place, ${numbers}
      from ${table(stream)} e where e._missing_since is null group by ${group}`;
}

/** Groups rows by their dimension. They are counted by link first, which leaves few rows to join. */
function placed(
  dialect: Dialect,
  dimension: Dimension,
  { rows, group, sums }: { rows: string; group: readonly string[]; sums: string },
): string {
  const { place, join } = placeOf(dialect, dimension, 'place');
  const keys = ['p.source', 'p.date', `${place} as ${dimension.key}`, ...group];
  return `
    select ${keys.join(', ')}, ${sums}
    from (${rows}
    ) p ${join}
    group by ${keys.map((_, i) => i + 1).join(', ')}`;
}
