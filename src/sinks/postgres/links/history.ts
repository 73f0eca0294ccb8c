import { nameIn, quoteIdent, raw, type Sql, sql } from '../../../cursor/database/sql.ts';
import { toIso } from '../../../model/instant.ts';
import { LINK_COUNTERS, LINKS, SOURCE } from '../../../model/streams.ts';
import type { LinksSnapshot } from '../../sink.ts';
import { type Table, type TableColumn, toTableColumn } from '../table.ts';

/** What of a link makes a new version of it: not its counters, and not that something else changed. */
const columns = LINKS.columns.filter(({ name }) => !LINK_COUNTERS.has(name) && name !== 'link_updated_at');

const moment = (name: string, nullable: boolean, comment: string): TableColumn => ({
  ...{ name, type: 'timestamptz', nullable, comment },
});

export const HISTORY = 'links_history';

export const historyTable: Table = {
  name: HISTORY,
  doc: 'What links were, by listings of all links: one row per link and version, without counters.',
  key: ['_source', 'link_id', 'valid_from'],
  columns: [
    toTableColumn(SOURCE),
    ...columns.map((column) => ({ ...toTableColumn(column), nullable: column.name !== LINKS.key })),
    moment(
      'valid_from',
      false,
      'From when on the link was so: by its updatedAt. The first version that is known counts from its creation.',
    ),
    moment('valid_to', true, 'Until when, exclusive; null: it still is. A link that is removed has no later version.'),
  ],
  indexes: [],
};

/** After a listing: ends versions that are no longer true, and begins those that are. None is empty: two listings may be of one second. */
export function keepHistory(schema: string, { source, at }: LinksSnapshot): Sql {
  const [table, history] = [nameIn(schema, LINKS.name), nameIn(schema, HISTORY)];
  const names = columns.map(({ name }) => quoteIdent(name));
  const of = (row: string): Sql => raw(names.map((name) => `${row}.${name}`).join(', '));
  const listedAt = sql`${toIso(at)}::timestamptz`;
  return sql`
    with ended as (
      update ${history} as h set valid_to = greatest(h.valid_from + interval '1 millisecond', case
          when t._missing_since is not null then t._missing_since
          when t.link_updated_at > h.valid_from and t.link_updated_at < ${listedAt} then t.link_updated_at
          else ${listedAt} end)
      from ${table} t
      where h._source = ${source} and t._source = ${source} and h.link_id = t.link_id and h.valid_to is null
        and (t._missing_since is not null or (${of('h')}) is distinct from (${of('t')}))
      returning h.link_id, h.valid_to)
    insert into ${history} (_source, ${raw(names.join(', '))}, valid_from)
    select t._source, ${of('t')}, coalesce(e.valid_to, case when exists (
      select from ${history} h where h._source = ${source} and h.link_id = t.link_id) then ${listedAt} end, t.link_created_at, ${listedAt})
    from ${table} t left join ended e on e.link_id = t.link_id
    where t._source = ${source} and t._missing_since is null and (e.link_id is not null or not exists (
      select from ${history} h where h._source = ${source} and h.link_id = t.link_id and h.valid_to is null))`;
}
