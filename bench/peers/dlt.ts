import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { here } from './python.ts';
import { idsInFiles, idsInTable, type Job, LOOKBACK_SECONDS, lakeOf, type Tool } from './tool.ts';

const run = promisify(execFile);

/** dlt's REST source, configured in dlt_pipeline.py. */
const dlt = (target: 'postgres' | 'parquet' | 'delta', lag: number, into: string): Tool => ({
  name: 'dlt',
  into,
  kind: target === 'postgres' ? 'Postgres' : 'Parquet',
  async sync(job) {
    const { service, place, python } = job;
    return {
      line: `'${join(python.main, 'python')}' '${here('dlt_pipeline.py')}'`,
      dir: place.dir,
      env: {
        BASE_URL: service.baseUrl,
        API_KEY: service.apiKey,
        SINCE: service.since,
        TARGET: target,
        PLACE: target === 'postgres' ? place.databaseUrl : lakeOf(job),
        LAG_SECONDS: String(lag),
        RUNTIME__DLTHUB_TELEMETRY: 'false',
        // Otherwise root shares one working folder, and a run finds files of another.
        DLT_DATA_DIR: place.dir,
      },
    };
  },
  ids(job) {
    const folder = join(lakeOf(job), 'peers/leads');
    if (target === 'postgres') return idsInTable(job, 'peers.leads', 'event_id');
    return target === 'parquet' ? idsInFiles(`${folder}/*.parquet`, 'event_id') : idsInDelta(job, folder);
  },
});

async function idsInDelta({ python }: Job, folder: string): Promise<string[]> {
  const { stdout } = await run(join(python.main, 'python'), [here('delta_ids.py'), folder], { maxBuffer: 2 ** 28 });
  return stdout.trim().split('\n');
}

export const dltIntoPostgres = dlt('postgres', LOOKBACK_SECONDS, 'Postgres, `lag`');
/** As in the tutorial, which does not mention late rows. */
export const dltWithoutLag = dlt('postgres', 0, 'Postgres');
/** Plain files are append-only: with a lag, reread rows would be duplicated. */
export const dltIntoParquet = dlt('parquet', 0, 'Parquet');
/** Its documented way of merging on files. */
export const dltIntoDelta = dlt('delta', LOOKBACK_SECONDS, 'Delta (Parquet), `lag`');
