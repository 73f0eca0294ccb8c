import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { backfill, configFor, openEngine, sync } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { serve } from '../support/http-server.ts';
import { smallSandbox } from '../support/sandbox.ts';

interface OtlpSpan {
  name: string;
  spanId: string;
  parentSpanId?: string;
  traceId: string;
  kind: number;
  status: { code?: number };
  attributes: Array<{ key: string; value: Record<string, unknown> }>;
}
interface Otlp {
  resourceSpans: Array<{
    resource: { attributes: OtlpSpan['attributes'] };
    scopeSpans: Array<{ spans: OtlpSpan[] }>;
  }>;
}

const engine = await forThisFile(openEngine());
afterEach(() => vi.unstubAllEnvs());

/** A collector that accepts the exported spans. */
async function collect() {
  const bodies: string[] = [];
  const server = await serve((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      bodies.push(String(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', server.baseUrl);
  const sent = () => bodies.map((body) => JSON.parse(body) as Otlp).flatMap(({ resourceSpans }) => resourceSpans);
  const spans = () => sent().flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  return { server, bodies, sent, spans };
}

describe('traces', () => {
  it('a run has its windows, a window its requests and commits; and nothing private', async () => {
    const sandbox = await smallSandbox({ days: 20 });
    const { server, bodies, sent, spans } = await collect();
    const config = configFor(engine, sandbox, { name: 'traced', since: '10d' });
    await sync(config, { streams: ['leads'] });
    const now = Date.now();
    await backfill(
      config,
      { window: { start: now - 20 * 86_400_000, end: now - 11 * 86_400_000 } },
      { streams: ['leads'] },
    );

    expect(server.seen.every((request) => request === 'POST /v1/traces')).toBe(true);
    expect(sent()[0]?.resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'tributary' } });
    const all = spans();
    const parentOf = (span: OtlpSpan) => all.find(({ spanId }) => spanId === span.parentSpanId)?.name ?? 'nothing';
    const pairs = new Set(all.map((span) => `${span.name} in ${parentOf(span)}`));
    expect([...pairs].filter((pair) => !/probe/.test(pair)).sort()).toEqual(
      expect.arrayContaining(['commit in window', 'request in window', 'run in nothing', 'window in run']),
    );
    expect(all.filter(({ name }) => name === 'run')).toHaveLength(2);
    expect(new Set(all.map(({ traceId }) => traceId)).size).toBe(2);
    const { requests } = await engine.db
      .query<{ requests: number }>({
        text: `select sum(requests)::int as requests from tributary.runs where source = 'traced'`,
      })
      .then(([row]) => row ?? { requests: 0 });
    expect(all.filter(({ name }) => name === 'request')).toHaveLength(requests);

    const [person] = await engine.db.query<{ email: string; name: string }>({
      text: `select customer_email as email, customer_name as name from attribution.leads where customer_email is not null limit 1`,
    });
    const text = bodies.join('');
    for (const secret of [sandbox.apiKey, person?.email, person?.name])
      expect(text.includes(secret ?? 'no person')).toBe(false);
  });

  it('an error is recorded by its class, not with text of the service', async () => {
    const sandbox = await smallSandbox();
    sandbox.service.faults.add({ status: 403, message: 'Dear Ada Example, upgrade.', times: 9 });
    const { bodies, spans } = await collect();
    await sync(configFor(engine, sandbox, { name: 'refused' }), { streams: ['leads'] });
    const failed = spans().filter(({ status }) => status.code === 2);
    expect(new Set(failed.map(({ name }) => name))).toContain('request');
    expect(failed.flatMap(({ attributes }) => attributes)).toContainEqual({
      key: 'error.type',
      value: { stringValue: 'StopStream' },
    });
    expect(bodies.join('')).not.toContain('Ada');
  });

  it('an unreachable collector costs only the traces', async () => {
    const { server } = await collect();
    await server.close();
    const outcomes = await sync(configFor(engine, await smallSandbox(), { name: 'alone' }), { streams: ['leads'] });
    expect(outcomes.map(({ report }) => report?.state)).toEqual(['done']);
  });
});
