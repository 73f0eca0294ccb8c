import type { StreamName } from '../../src/model/streams.ts';
import type { UnknownFields } from '../../src/sync/schema-evolution.ts';
import { openFeed } from './feed.ts';
import { ofFile, postgresPlace } from './postgres-place.ts';

/** Undeclared fields that become columns. */

export const schema = 'attribution';

export async function openEvolving() {
  const place = await postgresPlace({ schema });
  return {
    place,
    feed: (stream: StreamName, unknownFields: UnknownFields = 'evolve') =>
      openFeed({ state: place.state, sinks: [place.createSink()], stream, unknownFields }),
    /** A column of a source's rows, ordered by id, in Postgres's JSON form. */
    async column(stream: StreamName, source: string, name: string) {
      const rows = await place.db.query<{ value: unknown }>({
        text: `select to_jsonb(t) -> '${name}' #>> '{}' as value from ${schema}.${stream} t where _source = $1 order by event_id`,
        values: [source],
      });
      return rows.map(({ value }) => value);
    },
    async typesOf(stream: StreamName, like: string) {
      const found = await place.db.query<{ name: string; type: string }>({
        text: `
          select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
          where attrelid = $1::regclass and attnum > 0 and not attisdropped and attname ~ $2 order by attnum`,
        values: [`${schema}.${stream}`, like],
      });
      return Object.fromEntries(found.map(({ name, type }) => [name, type]));
    },
    history: (like: string) =>
      place.state.query({
        text: 'select path, name, kind, previous_kind as was, source from tributary.columns where path ~ $1 order by id',
        values: [like],
      }),
  };
}

/** Every test of the file uses its own fields. */
export const evolvingFile = () => ofFile(openEvolving, ({ place }) => place.close());
