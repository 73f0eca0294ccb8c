import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { connect } from '../../src/cursor/database/index.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { syncedRoom } from '../support/http-room.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { workerConfig } from '../support/workers.ts';

const { url } = await forThisFile(emptyEngine());
const sandbox = await smallSandbox();
interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

sandbox.service.faults.add({ status: 500, message: 'oops', match: { event: 'sales' }, times: 2 });
const config = {
  stateUrl: url,
  queueUrl: undefined,
  sandboxes: { main: sandbox },
  every: '1h',
  stream: { maxLag: '2h' },
};
const room = await forThisFile(syncedRoom(workerConfig(config)));
let text = await (await room.get('/metrics')).text();

const samples = (): Sample[] =>
  [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, of]) => [key, of])),
    value: Number(value),
  }));
const sum = (name: string, labels: Record<string, string> = {}): number =>
  samples()
    .filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((all, { value }) => all + value, 0);

const DOCS = readFileSync('docs/monitoring.md', 'utf8');
const documented = [...DOCS.matchAll(/^\| `(tributary_\w+)` \| ([\w, ]+) \|/gm)].map(([, name = '', labels = '']) => ({
  name,
  labels: labels.split(', ').sort(),
}));
/** A histogram is one name in the docs and three in its text. */
const familyOf = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');

describe('metrics', () => {
  it('are those that docs/monitoring.md describes, with those labels', () => {
    const found = new Map<string, Set<string>>();
    for (const { name, labels } of samples()) {
      const own = found.get(familyOf(name)) ?? new Set();
      for (const label of Object.keys(labels)) if (label !== 'le') own.add(label);
      found.set(familyOf(name), own);
    }
    const shown = [...found].map(([name, labels]) => ({ name, labels: [...labels].sort() }));
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
    expect(shown.sort(byName)).toEqual(documented.sort(byName));
  });

  it('use the labels of histograms and summaries only there, as promtool requires', () => {
    const types = Object.fromEntries(
      [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]),
    );
    const reserved = samples().filter(({ name, labels }) =>
      types[familyOf(name)] === 'histogram' ? 'quantile' in labels : 'quantile' in labels || 'le' in labels,
    );
    expect(reserved).toEqual([]);
    expect(Object.values(types)).toContain('histogram');
  });

  it('count rows, runs and requests', async () => {
    const { runs } = await room.json<{ runs: Array<{ new: number; unchanged: number; requests: number }> }>(
      '/api/runs',
    );
    expect(sum('tributary_rows_total', { outcome: 'new' })).toBe(1400);
    expect(sum('tributary_rows_total', { outcome: 'unchanged' })).toBe(
      runs.reduce((all, run) => all + run.unchanged, 0),
    );
    expect(sum('tributary_runs_total', { state: 'done' })).toBe(3);
    expect(sum('tributary_run_duration_seconds_count', { kind: 'sync' })).toBe(3);
    expect(sum('tributary_requests_total')).toBe(runs.reduce((all, run) => all + run.requests, 0));
    expect(sum('tributary_requests_total', { status: '500' })).toBe(2);
    expect(sum('tributary_queue_jobs', { queue: 'sync', state: 'delayed' })).toBe(3);
    expect(sum('tributary_up')).toBe(2);
    const lags = samples().filter(({ name }) => name === 'tributary_lag_seconds');
    expect(lags.map(({ value }) => value > 0 && value < 7200)).toEqual([true, true, true]);
    expect(sum('tributary_max_lag_seconds')).toBe(3 * 7200);
    expect(sum('tributary_budget_share')).toBeGreaterThan(0);
  });

  it('the dashboard and the alert rules use only existing metrics', () => {
    const dashboard = readFileSync('docs/monitoring/grafana-dashboard.json', 'utf8');
    const { panels } = JSON.parse(dashboard) as { panels: Array<{ targets: Array<{ expr: string }> }> };
    const { groups } = parse(readFileSync('docs/monitoring/alerts.yaml', 'utf8')) as {
      groups: Array<{ rules: Array<{ alert: string; expr: string; annotations: { summary: string } }> }>;
    };
    const rules = groups.flatMap((group) => group.rules);
    const asked = [...panels.flatMap(({ targets }) => targets), ...rules].map(({ expr }) => expr);
    expect(asked.length).toBeGreaterThan(20);
    const known = new Map(documented.map(({ name, labels }) => [name, labels]));
    for (const expr of asked) {
      const names = [...expr.matchAll(/tributary_\w+/g)].map(([name]) => familyOf(name));
      expect(names.length, expr).toBeGreaterThan(0);
      for (const name of names) expect([expr, known.has(name)]).toEqual([expr, true]);
      const allowed = [...names.flatMap((name) => known.get(name) ?? []), 'le', 'instance'];
      const labels = [...expr.matchAll(/(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
      for (const [, label = ''] of expr.matchAll(/[{,](\w+)=~?"/g)) labels.push(label);
      expect(
        labels.filter((label) => !allowed.includes(label)),
        expr,
      ).toEqual([]);
    }
    expect(rules.every(({ annotations }) => annotations.summary.length > 0)).toBe(true);
  });

  it('mark a first sync, whose lag is expected: every lag rule excludes it', async () => {
    const { groups } = parse(readFileSync('docs/monitoring/alerts.yaml', 'utf8')) as {
      groups: Array<{ rules: Array<{ expr: string }> }>;
    };
    const behind = groups
      .flatMap(({ rules }) => rules.map(({ expr }) => expr))
      .filter((expr) => /lag_seconds|last_success|uncertified/.test(expr));
    const LEFT_OUT = ' unless on (source, stream) max by (source, stream) (tributary_first_sync) == 1';
    expect(behind.map((expr) => expr.endsWith(LEFT_OUT))).toEqual([true, true, true]);
    expect(sum('tributary_first_sync')).toBe(0);
    // As before the end of the first run.
    const db = connect({ url: url });
    await db.query({ text: `update tributary.runs set state = 'interrupted'` });
    await db.query({ text: `update tributary.cursors set complete_through = now() - interval '20 days'` });
    await db.close();
    text = await (await room.get('/metrics')).text();
    const late = samples().filter(({ name, value }) => name === 'tributary_lag_seconds' && value > 7200);
    expect([late.length, sum('tributary_first_sync')]).toEqual([3, 3]);
  });

  it('contain no key, not even its digest', () => {
    expect(text).not.toContain(sandbox.apiKey);
    expect(text).not.toMatch(/[0-9a-f]{32}/);
  });
});
