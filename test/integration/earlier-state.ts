/** Dropped tables, and the version that dropped each. */
export const DROPPED: Readonly<Record<string, number>> = { lake_keys: 26 };

/** The contents of the state in each version, as statements: every table that a migration creates has a row here. */
export const ROWS_SINCE_VERSION: Readonly<Record<number, readonly string[]>> = {
  1: [
    `insert into cursors (source, stream, sink, since, complete_through, newest_seen)
     select 'kept', stream, 'warehouse', date_trunc('day', now(), 'UTC') - interval '30 days', now() - interval '5 days', now() - interval '4 days'
     from unnest(array['clicks', 'leads', 'sales']) stream`,
    `insert into windows (source, stream, sink, start_at, end_at, state, rows, proven_at, run_id)
     select source, stream, sink, since, complete_through, 'certified', 0, now(), '20261114T120000-00000001' from cursors`,
    `insert into runs (id, kind, source, stream, state, rows_read) values ('20261114T120000-00000001', 'sync', 'kept', 'clicks', 'done', 7)`,
    `insert into leases values ('kept', 'clicks', 41, 'somebody', now() - interval '1 hour')`,
    `insert into profiles values ('kept', 'clicks', 'exact', 1000, 1000)`,
    `insert into columns (stream, path, name, kind, source, run_id)
     values ('clicks', 'click.ua', 'click_ua', 'text', 'kept', '20261114T120000-00000001')`,
    `insert into forgotten values ('kept', 'customer', 'a digest')`,
    `insert into quarantine (source, stream, digest, reason, record, run_id)
     values ('kept', 'clicks', 'a digest', 'no time', '{}', '20261114T120000-00000001')`,
  ],
  2: [`insert into filters values ('other', 'clicks', '{"country":"US"}')`],
  3: [
    `insert into budgets (key_hash, per_second) values ('a digest', 4)`,
    `insert into budget_use (key_hash, minute, per_second, fresh) values ('a digest', now(), 4, 17)`,
  ],
  4: [
    `insert into lake_tracks (sink, stream, source, unsettled) values ('lake', 'clicks', 'kept', false)`,
    `insert into lake_files (track, partition, identity, rows, holds_before) values (1, 480000, 'etag', 7, false)`,
    `insert into lake_keys values (1, 4711, 480000)`,
  ],
  5: [
    `insert into schedules (source, stream, plan) values ('kept', 'clicks', 'every 300000')`,
    `insert into parked (source, stream, fingerprint, reason, next_probe_at)
     values ('other', '*', 'a digest', 'the key was refused', now() + interval '1 hour')`,
    `insert into incidents (source, stream, kind, message) values ('other', '*', 'parked', 'the key was refused')`,
    `insert into backfills (id, source, stream, start_at, end_at, force)
     values ('b1', 'other', 'clicks', now() - interval '9 days', now() - interval '8 days', false)`,
    `insert into backfill_windows (backfill_id, start_at, end_at) select id, start_at, end_at from backfills`,
  ],
  8: [
    `insert into audit (actor, action, target) values ('ada', 'cursor.reset', 'kept/leads')`,
    `insert into sources (name, base_url) values ('other', 'https://api.example.com')`,
  ],
  9: [`insert into ended_sessions (id, expires_at) values ('a digest', now() + interval '1 day')`],
  15: [
    `insert into attestations (source, stream, sink, identity, counted_at) values ('kept', 'clicks', 'warehouse', 'a file', now())`,
    `insert into foreign_rows (source, stream, sink, start_at, end_at, what)
     values ('kept', 'clicks', 'warehouse', now() - interval '9 days', now() - interval '8 days', 'rows of another writer')`,
    `insert into iceberg_heads (sink, table_name, table_uuid, location) values ('tables', 'clicks', 'a uuid', 'a place')`,
  ],
  16: [
    `insert into run_log (run_id, kind, at, entry)
     values ('20261114T120000-00000001', 'line', now(), '{"level": "info", "message": "kept", "details": {}}')`,
  ],
  26: [`insert into lake_index values (1, 4711, 480000)`],
};
