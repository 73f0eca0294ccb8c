import type { Transaction } from '../../cursor/database/index.ts';
import { nameIn, quoteIdent, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import { toIso } from '../../model/instant.ts';
import { LINK_COUNTERS, LINKS, SOURCE } from '../../model/streams.ts';
import { createSanitizer, POSTGRES_TEXT } from '../merge-rule.ts';
import type { LinksSnapshot, Receipt } from '../sink.ts';
import { pickValues } from './compare.ts';
import { entityStage, mergedValue } from './merge.ts';
import { type Staged, sendStage } from './staged.ts';
import { type Table, type TableColumn, toTableColumn } from './table.ts';

/** Merges a listing into the table of links in one transaction, so that readers see the previous listing or this one. */
export async function replaceLinks(tx: Transaction, schema: string, snapshot: LinksSnapshot): Promise<Receipt> {
  const { rows } = snapshot;
  const sanitizer = createSanitizer(LINKS, POSTGRES_TEXT);
  // Without `_extra`, which the table of links does not have.
  const values = pickValues(sanitizer.all(rows), [...LINKS.columns.keys()]);
  const staged = await sendStage(tx, entityStage(LINKS), values);
  const [done] = await tx.query<{ new: number; changed: number }>(mergeListing(schema, staged, snapshot));
  const missing = snapshot.isProven ? await tx.query(markMissing(schema, snapshot)) : [];
  if (snapshot.keepHistory) await tx.query(keepHistory(schema, snapshot));
  const [added, changed] = [done?.new ?? 0, done?.changed ?? 0];
  return {
    ...{ new: added, changed: changed + missing.length, unchanged: rows.length - added - changed },
    sanitized: sanitizer.sanitized(),
  };
}

const names = LINKS.columns.map(({ name }) => quoteIdent(name));

/** The rule of `mergedValue`, except that an event that was read after the listing began has newer counters. */
const merged = LINKS.columns.map(({ name }) => {
  const value = mergedValue(LINKS, name);
  return LINK_COUNTERS.has(name)
    ? `case when t._observed_at > excluded._listed_at then t.${quoteIdent(name)} else ${value} end`
    : value;
});

const mergeListing = (schema: string, staged: Staged, { source, startedAt }: LinksSnapshot): Sql => sql`
  with merged as (
    insert into ${nameIn(schema, LINKS.name)} as t (_source, ${raw(names.join(', '))}, _observed_at, _listed_at)
    select ${source}, ${raw(names.join(', '))}, now(), ${toIso(startedAt)}::timestamptz from ${staged('s')} order by link_id
    on conflict (_source, link_id) do update
      set ${raw(names.map((name, i) => `${name} = ${merged[i]}`).join(', '))}, _listed_at = excluded._listed_at, _missing_since = null,
        _observed_at = case when t._missing_since is not null
          or ${raw(`(${names.map((name) => `t.${name}`).join(', ')}) is distinct from (${merged.join(', ')})`)} then now() else t._observed_at end
    returning xmax = 0 as is_new, _observed_at = now() as is_changed)
  select count(*) filter (where is_new)::int as new, count(*) filter (where is_changed and not is_new)::int as changed from merged`;

/** After the merge, marks the links that were not listed. A link made after the listing began may already be known from an event. */
function markMissing(schema: string, { source, at, startedAt }: LinksSnapshot): Sql {
  const began = sql`${toIso(startedAt)}::timestamptz`;
  return sql`
    update ${nameIn(schema, LINKS.name)} as t set _missing_since = ${began}
    where _source = ${source} and _missing_since is null and _listed_at is distinct from ${began}
      and coalesce(link_created_at < ${toIso(at)}::timestamptz, _observed_at < ${began})
    returning 1`;
}

/** The columns that make a new version of a link: all but the counters and `link_updated_at`. */
const versioned = LINKS.columns.filter(({ name }) => !LINK_COUNTERS.has(name) && name !== 'link_updated_at');

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
    ...versioned.map((column) => ({ ...toTableColumn(column), nullable: column.name !== LINKS.key })),
    moment(
      'valid_from',
      false,
      'From when on the link was so: by its updatedAt. The first version that is known counts from its creation.',
    ),
    moment('valid_to', true, 'Until when, exclusive; null: it still is. A link that is removed has no later version.'),
  ],
  indexes: [],
};

/** After a listing, ends outdated versions and starts new ones. No version is empty, although two listings may be of the same second. */
function keepHistory(schema: string, { source, at }: LinksSnapshot): Sql {
  const [table, history] = [nameIn(schema, LINKS.name), nameIn(schema, HISTORY)];
  const names = versioned.map(({ name }) => quoteIdent(name));
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
