import { expect, it, vi } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { readRunLog } from '../../src/cursor/run-log.ts';
import { listRuns, newRunId, startRun } from '../../src/cursor/runs.ts';
import { heard, observed } from '../../src/model/log.ts';
import { keepRunLog } from '../../src/sync/run-log.ts';
import { syncStream } from '../../src/sync/sync-stream.ts';
import { configFor, openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { newSource } from '../support/sink-harness.ts';

const engine = await forThisFile(openEngine());

const log = heard(silentLog);

it('has only lines of its own run when runs share a key, and every request, failed ones included', async () => {
  const sandbox = await smallSandbox();
  sandbox.service.faults.add({ status: 503, message: 'down for a moment', times: 1 });
  const signal = new AbortController().signal;
  const reports = await withSyncApp({ config: configFor(engine, sandbox), log }, ({ state, sinks, jobs }) =>
    Promise.all(
      jobs.map((job) => syncStream({ state, sinks, log, signal, holder: 'test', onProgress: () => {} }, job)),
    ),
  );
  const logs = await Promise.all(reports.map(({ runId }) => readRunLog(engine.db, runId)));
  expect(logs.map(({ request }) => request.length)).toEqual(reports.map(({ tally }) => tally.requests));
  for (const { line } of logs) expect(line.map(({ message }) => message)).toContain('committed');
  const all = logs.flatMap(({ request }) => request);
  expect(all.filter(({ status }) => status !== 200)).toEqual([expect.objectContaining({ status: 503, rows: null })]);
  expect(all.every(({ from, to, ms }) => (from ?? '') < (to ?? '') && ms >= 0)).toBe(true);
  expect(all.reduce((sum, { rows }) => sum + (rows ?? 0), 0)).toBeGreaterThan(0);
  const retried = logs.flatMap(({ line }) => line).filter(({ level }) => level === 'warn');
  expect(retried).toEqual([expect.objectContaining({ message: expect.stringMatching(/^trying again: .*503/) })]);
  expect(JSON.stringify(logs)).not.toContain(sandbox.apiKey);
});

const soFar = { rows: 12, requests: 3 };

async function begin(everyMs?: number) {
  const id = newRunId();
  await startRun(engine.db, { id, kind: 'sync', source: newSource(), stream: 'clicks' });
  return { id, keeper: keepRunLog(engine.db, id, silentLog, () => soFar, everyMs) };
}

const ask = () =>
  observed('request', { start: 0, end: 1, sortOrder: 'asc', page: 1, limit: 1000, rows: 7 }, async () => {});

it('can be read during the run, and is deleted with it', async () => {
  const { id, keeper } = await begin(20);
  await observed('run', { run: id }, async () => {
    await ask();
    await vi.waitFor(async () => expect((await readRunLog(engine.db, id)).request).toHaveLength(1));
  });
  await keeper.stop();
  expect(await listRuns(engine.db, { id, limit: 1 })).toMatchObject([{ read: 12, requests: 3 }]);
  await engine.db.query({ text: 'delete from tributary.runs where id = $1', values: [id] });
  expect(await readRunLog(engine.db, id)).toEqual({ line: [], request: [] });
});

it('keeps the last lines and requests of a long run, and no secret and nothing of others', async () => {
  const { id, keeper } = await begin();
  for (const part of [0, 1]) {
    await observed('run', { run: id }, async () => {
      for (let i = 0; i < 150; i++) log.info({ i: 150 * part + i, apiKey: 'hush', record: { a: 1 } }, 'a\0line\ud800');
      for (let i = 0; i < 300; i++) await ask();
      log.child({ token: 'hush' }).error({ err: new TypeError('cannot read hush') }, 'a bug');
    });
    log.info({}, 'of nobody');
    await observed('run', { run: 'another' }, async () => log.info({}, 'of another'));
    await keeper.write(engine.db);
  }
  await keeper.stop();
  const { line, request } = await readRunLog(engine.db, id);
  expect([line.length, request.length]).toEqual([200, 500]);
  expect(line.at(-2)).toMatchObject({ level: 'info', message: 'a\ufffdline\ufffd', details: { i: '299' } });
  expect(line.at(-1)?.details.err).toMatch(/^TypeError at .*run-log\.test\.ts/);
  expect(JSON.stringify(line)).not.toMatch(/hush|of nobody|of another/);
  const [{ n } = { n: 0 }] = await engine.db.query<{ n: number }>({
    text: 'select count(*)::int as n from tributary.run_log where run_id = $1',
    values: [id],
  });
  expect(n).toBe(700);
});
