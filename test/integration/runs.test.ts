import { expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { emptyTally, finishRun, newRunId, removeOldHistory, startRun } from '../../src/cursor/runs.ts';
import { RetryLater } from '../../src/model/errors.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { syncStream } from '../../src/sync/sync-stream.ts';
import { configFor, openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { newSource } from '../support/sink-harness.ts';

const engine = await forThisFile(openEngine());

async function begin(source: string, stream: StreamName = 'clicks'): Promise<string> {
  const id = newRunId();
  await startRun(engine.db, { id, kind: 'sync', source, stream });
  return id;
}

const runOf = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await engine.db.query({ text: 'select * from tributary.runs where id = $1', values: [id] }))[0];

it('is running from start to end, and then has its results', async () => {
  const id = await begin(newSource());
  expect(await runOf(id)).toMatchObject({ kind: 'sync', state: 'running', finished_at: null, rows_read: 0 });
  const counts = { read: 9, new: 1, changed: 2, unchanged: 6, quarantined: 3, requests: 4, tooManyRequests: 5 };
  const tally = { ...emptyTally(), ...counts, contradictions: { country: 7 }, typeMismatches: { 'click_qr"': 8 } };
  await finishRun(engine.db, id, { state: 'incomplete', message: 'try later' }, tally);
  expect(await runOf(id)).toMatchObject({
    state: 'incomplete',
    finished_at: expect.any(Date),
    message: 'try later',
    rows_read: 9,
    rows_new: 1,
    rows_changed: 2,
    rows_unchanged: 6,
    rows_quarantined: 3,
    requests: 4,
    too_many_requests: 5,
    contradictions: { country: 7 },
    misfits: { 'click_qr"': 8 },
  });
});

it('ends with any message, which may be text of the service', async () => {
  const id = await begin(newSource());
  await finishRun(engine.db, id, { state: 'refused', message: 'a\0b\ud800' }, emptyTally());
  expect(await runOf(id)).toMatchObject({ state: 'refused', message: 'a\ufffdb\ufffd' });
});

it('closes the run of a dead process when the next one starts on the same stream', async () => {
  const source = newSource();
  const [dead, otherStream, otherSource] = [
    await begin(source),
    await begin(source, 'leads'),
    await begin(newSource()),
  ];
  const next = await begin(source);
  expect(await runOf(dead)).toMatchObject({ state: 'interrupted', finished_at: expect.any(Date) });
  expect((await runOf(dead))?.message).toMatch(/ended before it could report/);
  for (const id of [otherStream, otherSource, next]) expect(await runOf(id)).toMatchObject({ state: 'running' });
});

it('keeps the results of a run that has ended', async () => {
  const source = newSource();
  const done = await begin(source);
  await finishRun(engine.db, done, { state: 'done' }, emptyTally());
  await begin(source);
  expect(await runOf(done)).toMatchObject({ state: 'done', message: null });
});

it('throws the original error, even if its end cannot be recorded', async () => {
  const config = configFor(engine, await smallSandbox());
  let isAway = false;
  await withSyncApp(
    { config, log: silentLog, choice: { streams: ['clicks'] } },
    async ({ state, sinks, jobs: [job] }) => {
      if (!job) throw new Error('no job');
      const failing: typeof state = {
        ...state,
        transaction: (work) => (isAway ? Promise.reject(new Error('the database is away')) : state.transaction(work)),
      };
      const broken = (error: Error) => ({
        ...job,
        findSince(): Promise<never> {
          isAway = true;
          return Promise.reject(error);
        },
      });
      const deps = {
        sinks,
        log: silentLog,
        signal: new AbortController().signal,
        holder: 'test',
        onProgress: () => {},
      };
      const sync = (error: Error) => syncStream({ ...deps, state: failing }, broken(error));
      await expect(sync(new TypeError('since of undefined'))).rejects.toThrow('since of undefined');
      isAway = false;
      expect((await sync(new RetryLater('the service is away'))).fault?.message).toBe('the service is away');
    },
  );
});

it('has unique ids that sort by time', () => {
  const times = [Date.UTC(2026, 10, 14, 10), Date.UTC(2026, 10, 14, 10, 0, 1), Date.UTC(2027, 0, 1)];
  const ids = times.map((time) => newRunId(time));
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(Array.from({ length: 100 }, () => newRunId(0))).size).toBe(100);
});

it('is deleted after its retention, except running ones and open incidents', async () => {
  const source = newSource();
  const [old, young, running] = [await begin(source), await begin(source, 'leads'), await begin(source, 'sales')];
  await finishRun(engine.db, old, { state: 'done' }, emptyTally());
  await finishRun(engine.db, young, { state: 'done' }, emptyTally());
  for (const id of [old, running]) {
    await engine.db.query({
      text: `update tributary.runs set started_at = now() - interval '91 days' where id = $1`,
      values: [id],
    });
  }
  await engine.db.query({
    text: `insert into tributary.incidents (source, stream, kind, message, opened_at, closed_at)
      values ($1, 'clicks', 'late', 'over', now() - interval '99 days', now() - interval '91 days'),
        ($1, 'leads', 'late', 'lasts', now() - interval '99 days', null)`,
    values: [source],
  });
  await removeOldHistory(engine.db, 90 * 86_400_000);
  expect(await Promise.all([old, young, running].map(runOf))).toEqual([
    undefined,
    expect.objectContaining({ id: young }),
    expect.objectContaining({ id: running }),
  ]);
  expect(
    await engine.db.query({ text: 'select message from tributary.incidents where source = $1', values: [source] }),
  ).toEqual([{ message: 'lasts' }]);
});
