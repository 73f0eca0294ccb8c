import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { parseConfig } from '../../src/config/index.ts';
import { holderOf } from '../../src/cursor/database/holders.ts';
import type { Log } from '../../src/model/log.ts';
import type { StreamReport } from '../../src/sync/run.ts';
import { syncAll } from '../../src/sync/sync-stream.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { proveCase, rowsOf } from '../support/proof.ts';
import { silentLog } from '../support/silent-log.ts';
import { ANSWERS, type AnswerTrap } from './answer-traps.ts';
import { BYSTANDER, type CorpusService, serveCorpus, trapsIn } from './corpus.ts';

/** Every answer of the corpus over real HTTP, in place of a stream's first page; later answers are sound. */

const KEY = 'canary-key-4711';
/** The event in all readable answers. */
const EVENT = 'ev_1';
/** Longer waits are checked in the log, then cut short. */
const PATIENCE_MS = 1500;

/** A deliberate answer is repeated every time; a transport error occurs once. */
const timesOf = (trap: string): number =>
  ['stored', 'stopped'].includes(ANSWERS[trap as keyof typeof ANSWERS]?.outcome ?? '') ? Number.POSITIVE_INFINITY : 1;

let engine: Engine;
let service: CorpusService;
beforeAll(async () => {
  [engine, service] = await Promise.all([openEngine(), serveCorpus(timesOf)]);
});
afterAll(async () => {
  await service.close();
  await engine.close();
});

interface Retry {
  waitMs: number;
  message: string;
}

async function syncTrap(trap: string): Promise<{ report: StreamReport; retries: Retry[]; ids: string[] }> {
  const name = `a-${trap}`;
  // Separate keys: a 429 delays every request with the same key.
  const source = { baseUrl: service.baseUrlOf('answers', trap), apiKey: `${KEY}-${trap}`, since: '2026-11-01' };
  const text = JSON.stringify({
    sources: { [name]: { ...source, plan: 'enterprise', requestsPerSecond: 1000, streams: { leads: {} } } },
    state: { url: engine.url },
  });
  const { config } = parseConfig(text, 'corpus.yaml', {});
  const stop = new AbortController();
  const retries: Retry[] = [];
  const log: Log = {
    ...silentLog,
    warn(details: unknown, message?: string) {
      const { waitMs = 0 } = details as { waitMs?: number };
      retries.push({ waitMs, message: message ?? '' });
      if (waitMs > PATIENCE_MS) stop.abort();
    },
    child: () => log,
  };
  const [{ report } = {}] = await withSyncApp({ config, log }, ({ state, sinks, jobs }) =>
    syncAll({ state, sinks, log, signal: stop.signal, holder: holderOf('sync'), onProgress: () => {} }, jobs),
  );
  if (!report) throw new Error('no report');
  const tables = await engine.db.query({ text: `select 1 where to_regclass('attribution.leads') is not null` });
  const rows = tables.length
    ? await engine.db.query<{ id: string }>({
        text: 'select event_id as id from attribution.leads where _source = $1',
        values: [name],
      })
    : [];
  return { report, retries, ids: rows.map(({ id }) => id) };
}

it('every file has its outcome, and every outcome its file', () => {
  expect(Object.keys(ANSWERS).sort()).toEqual(trapsIn('answers'));
  expect(trapsIn('answers').length).toBeGreaterThan(60);
});

/** Checks how the run ended, whether it retried, and what it stored. */
function check(trap: AnswerTrap, { report, retries, ids }: Awaited<ReturnType<typeof syncTrap>>): void {
  const { state, fault, tally } = report;
  switch (trap.outcome) {
    case 'stored':
      // The same answer to every query proves nothing; its rows are stored even so.
      expect({ retries, ids }).toEqual({ retries: [], ids: [EVENT] });
      expect(['done', 'incomplete']).toContain(state);
      break;
    case 'retried':
      expect({ state, ids }).toEqual({ state: 'done', ids: [BYSTANDER] });
      expect(retries.map(({ message }) => message)).toEqual([expect.stringMatching(trap.says)]);
      break;
    case 'waited':
      expect(retries.map(({ waitMs }) => waitMs)).toEqual([trap.waitMs]);
      expect(tally.tooManyRequests + tally.requests).toBeGreaterThan(0);
      expect({ state, ids }).toEqual(
        trap.waitMs > PATIENCE_MS ? { state: 'interrupted', ids: [] } : { state: 'done', ids: [BYSTANDER] },
      );
      break;
    case 'page made smaller':
      expect({ state, retries, ids }).toEqual({ state: 'done', retries: [], ids: [BYSTANDER] });
      break;
    case 'stopped':
      expect(fault?.message).toMatch(trap.says);
      expect(fault?.next).toBeTruthy();
      expect({ state, retries, ids }).toEqual({ state: 'refused', retries: [], ids: [] });
      // The service may refuse long ranges or old starts, so a short and a recent one are tried once.
      expect(tally.requests).toBeLessThanOrEqual(3);
  }
}

/** The rows that must be stored: none if the run stopped or is still waiting. */
function wantedOf(trap: AnswerTrap): string[] {
  if (trap.outcome === 'stored') return [EVENT];
  return trap.outcome === 'stopped' || (trap.outcome === 'waited' && trap.waitMs > PATIENCE_MS) ? [] : [BYSTANDER];
}

describe.concurrent.each(Object.entries(ANSWERS))('%s', (name, trap) => {
  it(`${trap.outcome}: ${trap.means}`, async () => {
    const found = await syncTrap(name);
    await proveCase({ suite: 'bad input', name, ...rowsOf(wantedOf(trap), found.ids) }, () => {
      check(trap, found);
      const said = [found.report.fault?.describe(), ...found.retries.map(({ message }) => message)].join('\n');
      expect(said).not.toContain(KEY);
      // Nor any part of an event, in any encoding.
      expect(said).not.toMatch(/ev_1|Sign up|cus_1/);
    });
  });
});
