import type { Transaction } from '../../../cursor/database/index.ts';
import { nameIn, quoteIdent, raw, type Sql, sql } from '../../../cursor/database/sql.ts';
import { toIso } from '../../../model/instant.ts';
import { LINK_COUNTERS, LINKS } from '../../../model/streams.ts';
import { createSanitizer, POSTGRES_TEXT } from '../../merge-rule.ts';
import type { LinksSnapshot, Receipt } from '../../sink.ts';
import { picked } from '../compare.ts';
import { entityStage, mergedValue } from '../merge.ts';
import { type Staged, sendStage } from '../staged.ts';
import { keepHistory } from './history.ts';

/** A listing becomes the table of links: one transaction, so that readers see the listing before or this one. */
export async function replaceLinks(tx: Transaction, schema: string, snapshot: LinksSnapshot): Promise<Receipt> {
  const { rows } = snapshot;
  const sanitizer = createSanitizer(LINKS, POSTGRES_TEXT);
  // Without `_extra`, which the table of links does not have.
  const values = picked(sanitizer.all(rows), [...LINKS.columns.keys()]);
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

/** By the rule of `mergedValue`; an event that was read since the listing began has the newer counters. */
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

/** After the merge: what it did not touch was not listed. A link that was made after the listing began may be known from an event already. */
function markMissing(schema: string, { source, at, startedAt }: LinksSnapshot): Sql {
  const began = sql`${toIso(startedAt)}::timestamptz`;
  return sql`
    update ${nameIn(schema, LINKS.name)} as t set _missing_since = ${began}
    where _source = ${source} and _missing_since is null and _listed_at is distinct from ${began}
      and coalesce(link_created_at < ${toIso(at)}::timestamptz, _observed_at < ${began})
    returning 1`;
}
