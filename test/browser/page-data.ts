import type {
  Backfill,
  Budget,
  Coverage,
  CoverageWindows,
  DayRun,
  DayState,
  EventRows,
  Overview,
  Rows,
  RunRow,
  StreamOverview,
  TopLinks,
} from '../../src/http/api-types.ts';
import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const iso = (at: number): string => new Date(at).toISOString();
const day = (at: number): string => iso(at).slice(0, 10);

export interface Size {
  sources: number;
  days: number;
  /** The state changes every so many days: short runs of equal days are the worst case for a page. */
  runDays: number;
  /** What the overview shows: problems, no problems, the first hour, or a config that no run has read yet. */
  scene?: Scene;
}

export const SCENES = ['troubled', 'calm', 'first sync', 'new'] as const;
export type Scene = (typeof SCENES)[number];

const ODD: readonly DayState[] = ['uncertified', 'quarantined', 'gap'];

/** The data of a control room of any size, without a database. */
export function pageData({ sources, days, runDays, scene = 'troubled' }: Size) {
  const now = Date.now();
  const names = Array.from(
    { length: sources },
    (_, i) => ['main', 'shop', 'partners', 'events', 'archive'][i] ?? `s${i}`,
  );
  const streams = names.flatMap((source) => STREAM_NAMES.map((stream) => ({ source, stream })));
  const since = Math.floor(now / DAY) * DAY - (days - 1) * DAY;

  const troubled: Overview = {
    now: iso(now),
    version: '0.1.0',
    activities: [
      {
        kind: 'backfill',
        id: 'b1',
        source: names[0] ?? '',
        stream: 'clicks',
        startedAt: iso(now - HOUR),
        progress: 0.42,
        rows: 48_210,
        rowsPerSecond: 3900,
        etaSeconds: 1840,
        paused: false,
      },
    ],
    troubles: [
      {
        kind: 'parked',
        source: names.at(-1) ?? '',
        stream: 'sales',
        message: 'the service refuses (403): the plan has no analytics for this workspace',
        since: iso(now - 3 * HOUR),
      },
    ],
    streams: streams.map(({ source, stream }, i): StreamOverview => {
      const isLast = i === streams.length - 1;
      const lagSeconds = isLast ? 11_000 : 240 + 47 * i;
      const completeThrough = iso(now - lagSeconds * 1000);
      return {
        source,
        stream,
        configured: true,
        since: iso(since),
        filters: i === 1 ? 'country=US,CA' : null,
        warnings: i === 1 ? ['main/leads: query is not checked: no column shows whether the service applies it'] : [],
        setAside: i === 1 ? 2 : 0,
        completeThrough,
        newestSeen: iso(now - 40_000),
        lagSeconds,
        maxLagSeconds: 1800,
        firstSync: false,
        late: isLast,
        parked: isLast
          ? {
              reason: 'the plan is too low',
              nextStep: 'upgrade the plan, then press Sync now',
              since: iso(now - 3 * HOUR),
              nextProbeAt: iso(now + HOUR),
            }
          : null,
        quarantined: i === 1 ? 2 : 0,
        rows: 1_204_331 >> i,
        rowsToday: 4210 >> i,
        uncertifiedWindows: i === 2 ? 1 : 0,
        lastRun: {
          id: `run-${i}`,
          kind: 'sync',
          state: isLast ? 'refused' : 'done',
          startedAt: iso(now - 65_000),
          finishedAt: iso(now - 61_000),
          message: null,
        },
        lastSuccessAt: iso(now - 61_000),
        nextRunAt: iso(now + 55_000),
        sinks: [
          {
            sink: 'warehouse',
            since: iso(since),
            completeThrough,
            newestSeen: iso(now - 40_000),
            lagSeconds,
            uncertifiedWindows: 0,
            alsoComplete: i === 1 ? [{ start: iso(since - 60 * DAY), end: iso(since - 30 * DAY) }] : [],
          },
        ],
      };
    }),
  };

  const overview = overviewOf(scene, troubled);

  const coverage = (from = since): Coverage => ({
    from: day(from),
    to: day(now + DAY),
    feeds: streams.map(({ source, stream }, i) => ({
      source,
      stream,
      sink: 'warehouse',
      since: iso(since),
      days: dayRuns({ from, now, runDays, feed: i }),
      rows: Array.from({ length: days }, (_, n) => ({
        date: day(since + n * DAY),
        rows: n % 11 === 5 ? null : ((n * 37) % 89) * 100 + 7,
      })),
    })),
  });

  const rows = (per: 'hour' | 'day', only: { source?: string; stream?: string } = {}): Rows => {
    const [step, count] = per === 'hour' ? [HOUR, 48] : [DAY, 30];
    const from = Math.floor(now / step) * step - (count - 1) * step;
    return {
      per,
      from: iso(from),
      to: iso(now),
      series: streams
        .filter(({ source, stream }) => source === (only.source ?? source) && stream === (only.stream ?? stream))
        .map(({ source, stream }, s) => ({
          source,
          stream,
          points: Array.from({ length: count }, (_, i) => {
            const wave = 1.2 + Math.sin((i + s) / (per === 'hour' ? 3.8 : 1.1));
            const fresh = Math.round((stream === 'clicks' ? 900 : stream === 'leads' ? 210 : 120) * wave);
            return {
              at: iso(from + i * step),
              read: fresh * 2,
              new: fresh + (i === 0 && s === 0 ? 41_603 : 0),
              firstSync: i === 0 && s === 0 ? 41_603 : 0,
              changed: 3,
              quarantined: 0,
              runs: 12,
              failed: 0,
            };
          }).filter((_, i) => per === 'day' || i < 20 || i > 22),
        })),
    };
  };

  const eventRows = (only: { source?: string; stream?: string }): EventRows => {
    const { from, to, series } = rows('day', only);
    return {
      ...{ from, to },
      series: series.map(({ points, ...of }) => ({
        ...of,
        points: points.map(({ at, read }) => ({ at, rows: read })),
      })),
    };
  };

  const budget = (minutes: number, step: number): Budget => ({
    now: iso(now),
    minutes,
    step,
    keys: names.map((source, k) => ({
      sources: [source],
      perSecond: 4,
      pausedSeconds: k === 0 ? 12 : null,
      points: Array.from({ length: Math.floor(minutes / step) }, (_, i) => {
        const share = 0.25 + 0.2 * Math.sin((i + k) / 6);
        const all = Math.round(share * 4 * 60 * step);
        const byLane = { fresh: Math.round(all * 0.3), repair: Math.round(all * 0.1), backfill: Math.round(all * 0.6) };
        const at = iso(now - (minutes - i * step) * 60_000);
        return { at, requests: all, byLane, tooManyRequests: i % 23 === 7 ? 2 : 0, pauses: 0, share };
      }),
    })),
  });

  const runs: RunRow[] = Array.from({ length: 14 }, (_, i) => ({
    id: `run-${i}`,
    kind: i % 9 === 4 ? 'backfill' : 'sync',
    ...(streams[i % streams.length] ?? { source: 'main', stream: 'clicks' }),
    state: i === 0 ? 'running' : i === 5 ? 'incomplete' : 'done',
    startedAt: iso(now - i * 90_000),
    finishedAt: i === 0 ? null : iso(now - i * 90_000 + 4000),
    durationSeconds: i === 0 ? null : 4 + i,
    message:
      i === 5
        ? 'window 2026-11-14 02:00 to 04:00 could not be proven: the service answered 500 on page 3; what was read is stored; run it again'
        : null,
    read: 1000 + 37 * i,
    new: 200 + i,
    changed: i,
    unchanged: 800,
    quarantined: i === 7 ? 2 : 0,
    requests: 4 + i,
    tooManyRequests: i === 9 ? 1 : 0,
    sinks: null,
  }));

  const backfills: Backfill[] = (['queued', 'paused', 'failed', 'done', 'cancelled'] as const).map((state, i) => ({
    id: `b-${i}`,
    source: 'main',
    stream: STREAM_NAMES[i % 3] ?? 'clicks',
    from: '2026-01-01T00:00:00.000Z',
    to: '2026-07-01T00:00:00.000Z',
    force: false,
    state,
    running: state === 'queued',
    createdAt: iso(now - (i + 1) * HOUR),
    finishedAt: state === 'done' ? iso(now - HOUR) : null,
    windows: {
      queued: state === 'done' ? 0 : 60,
      running: state === 'queued' ? 2 : 0,
      done: 119,
      failed: state === 'failed' ? 2 : 0,
    },
    progress: state === 'done' ? 1 : 0.66,
    rows: 48_213 * (i + 1),
    pricedRows: i === 0 ? 73_000 : null,
    certified: state === 'done' ? 1 : 0.66,
    rowsPerSecond: state === 'queued' ? 3900 : null,
    etaSeconds: state === 'queued' ? 1840 : null,
    message: state === 'failed' ? 'window 2026-03-04 to 2026-03-05: the service answered 500 five times' : null,
    actions: (
      { queued: ['pause', 'cancel'], paused: ['resume', 'cancel'], failed: ['retry'], done: [], cancelled: [] } as const
    )[state].slice(),
  }));

  const links: TopLinks = {
    by: 'clicks',
    from: iso(now - 30 * DAY),
    to: iso(now),
    sink: 'warehouse',
    links: Array.from({ length: 12 }, (_, i) => ({
      source: names[i % names.length] ?? 'main',
      linkId: `link_${i}8fK2`,
      shortLink:
        i === 9
          ? null
          : `go.example.com/${['launch', 'autumn', 'docs', 'pricing', 'webinar', 'ios', 'press', 'team', 'beta', 'x', 'faq', 'jobs'][i]}`,
      clicks: Math.round(18_400 / (i + 1)),
      leads: Math.round(2100 / (i + 1)),
      sales: Math.round(310 / (i + 1)),
      revenue:
        i === 9
          ? []
          : [
              { currency: 'usd', amount: Math.round(1_240_050 / (i + 1)) / 100 },
              ...(i === 1 ? [{ currency: 'jpy', amount: 48_000 }] : []),
            ],
    })),
  };

  const windows = (of: { source: string; stream: StreamName }, from: string): CoverageWindows => {
    const feed = streams.findIndex(({ source, stream }) => source === of.source && stream === of.stream);
    return { ...of, sink: 'warehouse', ...windowsOfDay(dayRuns({ from: since, now, runDays, feed }), from) };
  };

  return { overview, coverage, windows, rows, eventRows, budget, runs, backfills, links };
}

/** The same overview in another scene. Figures have their greatest width. */
function overviewOf(scene: Scene, troubled: Overview): Overview {
  const now = Date.parse(troubled.now);
  const calm = troubled.streams.map((stream, i): StreamOverview => {
    const lagSeconds = 600 + 47 * i;
    const completeThrough = iso(now - lagSeconds * 1000);
    return {
      ...stream,
      ...{ parked: null, late: false, uncertifiedWindows: 0, setAside: 0, quarantined: 0, lagSeconds, completeThrough },
      lastRun: stream.lastRun && { ...stream.lastRun, state: 'done' },
    };
  });
  const first = calm.map((stream, i): StreamOverview => {
    const has = i % 3 === 0;
    return {
      ...stream,
      ...{ firstSync: true, rows: has ? 41_603 : 0, rowsToday: has ? 41_603 : 0, nextRunAt: null, lastSuccessAt: null },
      ...(has ? { lagSeconds: 48 * 86_400 + 11_000 } : { lagSeconds: null, completeThrough: null }),
      lastRun: stream.lastRun && { ...stream.lastRun, state: 'running', finishedAt: null },
    };
  });
  const syncs = first.map(({ source, stream, lastRun, rows }): Overview['activities'][number] => ({
    ...{ kind: 'sync', id: lastRun?.id ?? '', source, stream, startedAt: iso(now - 65_000), paused: false },
    ...(rows
      ? { progress: 0.69, rows, rowsPerSecond: 640, etaSeconds: 720 }
      : { progress: 0.31, rows: 120, rowsPerSecond: 2, etaSeconds: 90 }),
  }));
  switch (scene) {
    case 'troubled':
      return troubled;
    case 'calm':
      return { ...troubled, troubles: [], activities: [], streams: calm };
    case 'first sync':
      return { ...troubled, troubles: [], activities: syncs, streams: first };
    case 'new':
      return {
        ...troubled,
        ...{ troubles: [], activities: [] },
        streams: first.map((stream) => ({
          ...stream,
          ...{
            since: null,
            completeThrough: null,
            newestSeen: null,
            lagSeconds: null,
            rows: null,
            rowsToday: 0,
            lastRun: null,
          },
          ...{ sinks: [], nextRunAt: iso(now + 2000) },
        })),
      };
  }
}

/** Mostly certified days with some odd ones between; each feed differs, so that none is merged with another. */
function dayRuns({ from, now, runDays, feed }: Record<'from' | 'now' | 'runDays' | 'feed', number>): DayRun[] {
  const runs: DayRun[] = [];
  const last = Math.floor(now / DAY) * DAY;
  for (let at = Math.floor(from / DAY) * DAY, i = feed; at < last; i++) {
    const count = Math.min(i % 2 === 0 ? runDays : 1, (last - at) / DAY);
    runs.push({
      date: day(at),
      count,
      state: i % 2 === 0 ? 'certified' : (ODD[Math.floor(i / 2) % ODD.length] ?? 'gap'),
    });
    at += count * DAY;
  }
  return [...runs, { date: day(last), count: 1, state: 'open' }];
}

/** Four windows of a day, in agreement with its state. */
function windowsOfDay(
  runs: readonly DayRun[],
  date: string,
): Pick<CoverageWindows, 'from' | 'to' | 'windows' | 'quarantined'> {
  const start = Date.parse(date);
  const state = runs.find((run) => start < Date.parse(run.date) + run.count * DAY)?.state;
  const isProven = (i: number): boolean => state === 'certified' || state === 'quarantined' || i !== 2;
  return {
    from: iso(start),
    to: iso(start + DAY),
    windows: Array.from({ length: 4 }, (_, i) => ({
      start: iso(start + i * 6 * HOUR),
      end: iso(start + (i + 1) * 6 * HOUR),
      state: isProven(i) ? 'certified' : 'uncertified',
      rows: 1200 + 311 * i,
      readAt: iso(start + DAY),
      provenAt: isProven(i) ? iso(start + DAY + HOUR) : null,
      runId: '20261114T120000-00000001',
      tries: isProven(i) ? 0 : 2,
      note: isProven(i) ? null : 'the far end did not meet the chain',
    })),
    quarantined: state === 'quarantined' ? [17] : [],
  };
}

/** Every view of the control room, by address. */
export const VIEWS = {
  streams: '#/',
  'a stream by the year': `#/stream/main/clicks?zoom=year&day=${day(Date.now() - 3 * DAY)}`,
  'a stream by the month': '#/stream/main/clicks?zoom=month',
  'a stream in all': '#/stream/main/clicks?zoom=all&by=arrival&span=days',
  backfills: '#/backfills',
  runs: '#/runs',
  'a run': '#/run/run-5',
  budget: '#/budget',
  quarantine: '#/quarantine',
  'a record': '#/quarantine/17',
  schema: '#/schema',
  links: '#/links',
  audit: '#/audit',
};
