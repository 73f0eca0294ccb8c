import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { here } from './python.ts';
import { idsInFiles, idsInTable, LOOKBACK_SECONDS, lakeOf, type Tool } from './tool.ts';

/** Pipes tap_events.py into a target, and keeps the state between two runs as Meltano does: the target's last line. */
export const singer = (kind: Tool['kind']): Tool => ({
  name: 'Singer',
  into: kind,
  kind,
  async sync(job) {
    const { service, place, python } = job;
    const write = (name: string, value: unknown): Promise<void> =>
      writeFile(join(place.dir, name), JSON.stringify(value));
    await write('tap.json', {
      base_url: service.baseUrl,
      api_key: service.apiKey,
      start_date: service.since,
      lookback_seconds: LOOKBACK_SECONDS,
    });
    await write(
      'target.json',
      kind === 'Parquet'
        ? { destination_path: lakeOf(job) }
        : {
            sqlalchemy_url: sqlAlchemyUrl(place.databaseUrl),
            default_target_schema: 'peers',
            load_method: 'upsert',
            use_copy: true,
          },
    );
    const state = await lastState(join(place.dir, 'state.out'));
    if (state !== undefined) await writeFile(join(place.dir, 'state.json'), state);
    const tap = `'${join(python.main, 'python')}' '${here('tap_events.py')}' --config tap.json`;
    const target =
      kind === 'Postgres' ? join(python.main, 'target-postgres') : join(python.parquet ?? '', 'target-parquet');
    return {
      line: `${tap} ${state === undefined ? '' : '--state state.json'} | '${target}' --config target.json > state.out`,
      dir: place.dir,
      env: {},
    };
  },
  ids: (job) =>
    kind === 'Postgres'
      ? idsInTable(job, 'peers.leads', 'eventId')
      : idsInFiles(`${lakeOf(job)}/leads/*.parquet`, 'eventId'),
});

/** Our host is the folder of a socket, which SQLAlchemy takes as a parameter. */
function sqlAlchemyUrl(url: string): string {
  const { username, password, hostname, port, pathname } = new URL(url);
  return `postgresql+psycopg://${username}:${password}@${pathname}?host=${hostname}&port=${port}`;
}

async function lastState(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => ''); // None before the first sync.
  return text.trim().split('\n').at(-1) || undefined;
}
