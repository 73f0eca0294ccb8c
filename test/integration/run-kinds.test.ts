import { expect, it } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { listRuns } from '../../src/cursor/runs.ts';
import { observe } from '../../src/model/log.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { verifyStream } from '../../src/sync/maintain/verify.ts';
import { repairStream } from '../../src/sync/maintain/verify-job.ts';
import { configFor, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { lately, TODAY, tenDays, withJob } from '../support/verifying.ts';

const engine = await forThisFile(openEngine());

const sql = (config: Config, text: string) => engine.db.query({ text, values: [sourceOf(config)] });

/** Of the clicks, newest first. */
const kinds = async (config: Config): Promise<string[]> =>
  (await listRuns(engine.db, { source: sourceOf(config), stream: 'clicks', limit: 100 })).map(({ kind }) => kind);

it('the history, metrics and traces show the kind of each run: a sync, a re-sweep, a repair', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  const observed: unknown[] = [];
  const unwatch = observe(({ name, attributes }) => () => {
    if (name === 'run' && attributes.stream === 'clicks') observed.unshift(attributes.kind);
  });
  await syncAllDone(config);
  await syncAllDone(config);
  expect(await kinds(config)).toEqual(['sync', 'sync']);

  // As if a day had been certified when it was young: it is due to be read again.
  const day = new Date(TODAY - 5 * DAY_MS).toISOString();
  await sql(
    config,
    `update tributary.windows set proven_at = end_at, read_at = end_at
     where source = $1 and stream = 'clicks' and start_at <= '${day}' and end_at > '${day}'`,
  );
  await syncAllDone(config);
  expect(await kinds(config)).toEqual(['re-sweep', 'sync', 'sync']);

  await sql(config, `delete from attribution.clicks where _source = $1 and "timestamp" >= '${day}'`);
  await withJob(config, 'clicks', async (deps, job) =>
    repairStream(deps, job, await verifyStream(deps, job, lately())),
  );
  expect(await kinds(config)).toEqual(['repair', 're-sweep', 'sync', 'sync']);
  unwatch();
  expect(observed).toEqual(['repair', 're-sweep', 'sync', 'sync']);
});
