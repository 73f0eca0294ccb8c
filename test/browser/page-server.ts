import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import type { RunLog } from '../../src/http/api-types.ts';
import { SECURITY_HEADERS } from '../../src/http/endpoints.ts';
import { addPage } from '../../src/http/pages.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { pageData, type Size } from './page-data.ts';

export type PageServer = Awaited<ReturnType<typeof servePage>>;

/** Serves the page with canned answers of any size, for screenshots and measurements. */
export async function servePage(size: Size, { port = 0 } = {}) {
  const data = pageData(size);
  const listeners = new Set<ServerResponse>();
  const app = Fastify({ forceCloseConnections: true });
  app.addHook('onRequest', async (_, reply) => void reply.headers(SECURITY_HEADERS));
  await addPage(app);
  app.get('/api/events', (request, reply) => {
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { 'content-type': 'text/event-stream' });
    listeners.add(raw);
    request.raw.on('close', () => listeners.delete(raw));
    raw.write(`event: overview\ndata: ${JSON.stringify(data.overview)}\n\n`);
  });
  app.all('/api/*', ({ url, body }, reply) => {
    const { pathname, searchParams } = new URL(url, 'http://page');
    const answer = answerOf(data, pathname.slice(5), searchParams, body);
    const missing = { error: { status: 404, message: `there is no ${pathname}`, kept: null, next: null } };
    return reply.status(answer ? 200 : 404).send(answer ?? missing);
  });
  const baseUrl = await app.listen({ port, host: '127.0.0.1' });
  return {
    baseUrl,
    port: (app.server.address() as AddressInfo).port,
    /** Sends an event to every connected page. */
    send(event: string, payload: object) {
      for (const each of listeners) each.write(`event: ${event}\ndata: ${JSON.stringify(payload)}\n\n`);
    },
    close: () => app.close(),
  };
}

function answerOf(
  data: ReturnType<typeof pageData>,
  path: string,
  query: URLSearchParams,
  body: unknown,
): object | undefined {
  const [source, stream] = [query.get('source') ?? undefined, query.get('stream') ?? undefined];
  const from = query.get('from');
  const [area, id] = path.split('/');
  const head = {
    source: 'main',
    stream: 'leads' as const,
    reason: 'timestamp: "soon" is no instant',
    runId: '20261114T120000-00000007',
    firstAt: data.overview.now,
    lastAt: data.overview.now,
  };
  switch (path) {
    case 'session':
      return { signedIn: true, name: 'owner', role: 'admin', csrf: 'c' };
    case 'overview':
      return data.overview;
    case 'coverage': {
      const all = data.coverage(from ? Date.parse(from) : undefined);
      return {
        ...all,
        feeds: all.feeds.filter((t) => t.source === (source ?? t.source) && t.stream === (stream ?? t.stream)),
      };
    }
    case 'coverage/windows':
      return data.windows({ source: source ?? '', stream: stream as StreamName }, from ?? '');
    case 'rows':
      return data.rows(query.get('per') === 'day' ? 'day' : 'hour', {
        ...(source && { source }),
        ...(stream && { stream }),
      });
    case 'rows/events':
      return data.eventRows({ ...(source && { source }), ...(stream && { stream }) });
    case 'budget':
      return data.budget(Number(query.get('minutes')), Number(query.get('step')));
    case 'runs':
      return { runs: data.runs.slice(0, Number(query.get('limit') ?? 50)), next: 'older' };
    case 'backfills':
      return { backfills: data.backfills };
    case 'backfills/price':
      return price(body as { streams: string[] });
    case 'quarantine':
      return { total: 2, records: [17, 18].map((n) => ({ id: n, ...head })), next: null };
    case 'verifications':
      return { verifications: [verification(data.overview.now)] };
    case 'schema-changes':
      return { changes: schemaChanges(data.overview.now) };
    case 'links/top': {
      const q = query.get('q');
      const { links, ...head } = data.links;
      return { ...head, links: links.filter(({ linkId, shortLink }) => !q || linkId === q || shortLink?.includes(q)) };
    }
    case 'audit':
      return {
        entries: [
          {
            id: '7',
            at: data.overview.now,
            actor: 'owner',
            action: 'backfill.start',
            target: 'main/clicks',
            from: '127.0.0.1',
            detail: { from: '2026-11-01', to: '2026-11-08' },
          },
        ],
        next: null,
      };
  }
  if (path.endsWith('/log')) return runLog(Date.parse(data.overview.now));
  if (area === 'runs' && id?.startsWith('run-'))
    return {
      ...data.runs.find((run) => run.id === id),
      contradictions: { click_country: 3 },
      typeMismatches: {},
      schemaChanges: ['clicks.click_ua added as text'],
      windows: [
        {
          sink: 'warehouse',
          start: RANGE.from,
          end: RANGE.to,
          certified: false,
          rows: 4821,
          tries: 2,
          note: 'the last page moved while it was read',
        },
      ],
    };
  if (area === 'verifications') return { ...verification(data.overview.now), results: [comparison] };
  if (area === 'quarantine') {
    return {
      id: Number(id),
      ...head,
      record: JSON.stringify(
        {
          eventId: 'evt_1',
          timestamp: 'soon',
          customer: { name: '•••', email: '•••' },
          note: '<img src=x onerror=alert(1)>',
        },
        null,
        2,
      ),
    };
  }
  return undefined;
}

const runLog = (now: number): RunLog => ({
  lines: [
    { level: 'debug' as const, message: 'sweeping', details: { window: '2026-11-01 to 2026-11-08' } },
    {
      level: 'warn' as const,
      message: 'trying again: the service answered 503 Service Unavailable',
      details: { page: '1', status: '503', attempt: '1', waitMs: '412' },
    },
    {
      level: 'debug' as const,
      message: 'committed',
      details: { sink: 'warehouse', rows: '4821', through: '2026-11-07T23:59:59.000Z' },
    },
  ].map((line, i) => ({ at: new Date(now - 9000 + 1000 * i).toISOString(), ...line })),
  requests: Array.from({ length: 40 }, (_, i) => ({
    at: new Date(now - 60_000 + 1000 * i).toISOString(),
    ...RANGE,
    order: i % 2 === 0 ? 'asc' : 'desc',
    page: 1,
    limit: 1000,
    rows: i === 3 ? null : 1000 - i,
    ms: 180 + i,
    status: i === 3 ? 503 : 200,
  })),
});

const RANGE = { from: '2026-11-01T00:00:00.000Z', to: '2026-11-08T00:00:00.000Z' };

/** A verification with findings, so that the page renders all of its parts. */
const verification = (at: string): object => ({
  id: 'v',
  state: 'done',
  streams: [{ source: 'main', stream: 'clicks' }],
  ...RANGE,
  repair: false,
  startedAt: at,
  finishedAt: at,
  progress: 1,
  clean: false,
  message: null,
});

const counts = { events: 4821, missing: 3, extra: 0, different: 1 };
const comparison = {
  source: 'main',
  stream: 'clicks',
  ...RANGE,
  against: 'the service',
  requests: 12,
  events: 33_747,
  sinks: [
    {
      sink: 'warehouse',
      ...counts,
      days: [{ day: '2026-11-03', ...counts }],
      neverRead: [],
      miscounted: [],
      examples: [],
    },
  ],
  notComparable: [],
  repaired: null,
  error: null,
};

const schemaChanges = (at: string): object[] => [
  {
    at,
    source: 'main',
    stream: 'clicks',
    path: 'click.metadata.campaignInternalReference',
    column: 'click_metadata_campaign_internal_reference',
    kind: 'text',
    previousKind: null,
    runId: '20261114T120000-00000003',
  },
  {
    at,
    source: 'main',
    stream: 'sales',
    path: 'sale.tax',
    column: 'sale_tax',
    kind: 'numeric',
    previousKind: 'bigint',
    runId: '20261114T120000-00000004',
  },
];

const price = ({ streams }: { streams: string[] }): object => ({
  warnings: streams.includes('leads')
    ? ['main/leads: query is not checked: no column shows whether the service applies it']
    : [],
  streams: streams
    .map((stream) => [stream, ['clicks', 'leads', 'sales'].indexOf(stream)] as const)
    .map(([stream, i]) => ({
      source: 'main',
      stream,
      from: '2026-11-08',
      to: '2026-11-15',
      toRead: [],
      certified: 0.4 * i,
      rows: 48_000 / (i + 1),
      isCounted: i > 0,
      requests: 60 / (i + 1),
      probes: 4,
    })),
  sources: {
    main: {
      current: { perSecond: 4, seconds: 28 },
      others: [
        { plan: 'pro', perSecond: 2, seconds: 55 },
        { plan: 'advanced', perSecond: 8, seconds: 14 },
      ],
      pollShare: 0.08,
    },
  },
});
