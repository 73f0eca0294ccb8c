import type { Traits } from '../../test/support/odd-service/traits.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, NOON, type SandboxSync } from '../../test/support/sandbox-sync.ts';
import { type Bar, count, type Report, type Section, type Size } from '../support/report.ts';

/** Five events arrive during every request, one of them half an hour late. */
function busy({ api, service, pass, now }: SandboxSync): void {
  api.onRequest = () => {
    pass(500);
    service.arrive('clicks', 4, { from: now() - 500, to: now() - 1 });
    service.arrive('clicks', 1, { from: now() - 1_800_000, to: now() - 1_800_000 });
  };
}

interface Case {
  name: string;
  traits: Traits;
  live?: (sync: SandboxSync) => void;
}

const CALM: Case = { name: 'calm', traits: {} };
const CASES: readonly Case[] = [
  CALM,
  { name: 'busy: 5 arrivals a request', traits: {}, live: busy },
  { name: 'widening to days', traits: { widen: 'day' } },
  { name: 'whole seconds, shuffled ties', traits: { timestampForm: 'jsdate', shuffleTies: true } },
  { name: 'widening, whole seconds, shuffled', traits: { widen: 'day', timestampForm: 'jsdate', shuffleTies: true } },
  { name: '10 % of rows hidden', traits: { dropAfterLimit: 0.1 } },
];

/** Small first syncs, where requests other than pages weigh most. Each reads three days of rows, with 1,000 on a page. */
const PAGES = [1, 2, 5, 12, 20, 60, 100];
const SHAPES: Readonly<Record<string, (pages: number) => SandboxSync>> = {
  'until now': (pages) => createSandboxSync({ clicks: 1000 * pages }),
  'silent for 21 hours': (pages) =>
    createSandboxSync({ clicks: 1000 * pages, historyEnd: NOON - 21 * HOUR }, { since: NOON - 4 * DAY }),
  '`since` amid the rows': (pages) => createSandboxSync({ clicks: 1500 * pages }, { since: NOON - 2 * DAY }),
  'whole days': (pages) => createSandboxSync({ clicks: 1000 * pages, traits: { widen: 'day' } }),
};
const FEW_PAGES = 20;

/** Streams of few or no rows over 30 days. */
const SPARSE: Readonly<Record<string, () => SandboxSync>> = {
  '20 rows in 30 days': () => createSandboxSync({ clicks: 20, days: 30 }),
  '500 rows, then 80 days of silence': () =>
    createSandboxSync({ clicks: 500, days: 30, historyEnd: NOON - 80 * DAY }, { since: NOON - 111 * DAY }),
  'no row': () => createSandboxSync({ clicks: 0, days: 30 }),
};

interface SmallSync {
  asked: number;
  pages: number;
  idle: number;
}

/** A first sync, then a poll without new rows after the lookback of the last ones. An incomplete result meets no bar. */
async function smallSync(sync: SandboxSync): Promise<SmallSync> {
  const { requests: asked, hasDoubts } = await sync.run();
  let idle = 0;
  for (let poll = 0; poll < 8; poll++) {
    sync.pass(5 * MINUTE);
    idle = (await sync.run()).requests;
  }
  const pages = Math.ceil(sync.sink.rows.size / 1000);
  return { asked: hasDoubts ? Number.NaN : asked, pages, idle };
}

async function smallSyncs(size: Size): Promise<Report> {
  const pages = size === 'quick' ? PAGES.slice(0, 3) : PAGES;
  const found = new Map<string, SmallSync[]>();
  for (const [shape, make] of Object.entries(SHAPES)) {
    const of: SmallSync[] = [];
    for (const each of pages) of.push(await smallSync(make(each)));
    found.set(shape, of);
  }
  const sparse: Array<SmallSync & { name: string }> = [];
  for (const [name, make] of Object.entries(SPARSE)) sparse.push({ name, ...(await smallSync(make())) });
  return {
    tables: [
      {
        head: ['pages', ...found.keys()],
        rows: pages.map((n, i) => [n, ...[...found.values()].map((of) => cell(of[i]))]),
      },
      { head: ['stream', 'first sync', 'idle poll'], rows: sparse.map(({ name, asked, idle }) => [name, asked, idle]) },
    ],
    bars: [
      ...[...found].flatMap(([shape, of]) => barsOf(shape, of)),
      {
        says: 'requests of an idle poll, the most of these',
        measured: mostOf([...found.values()].flat(), 'idle'),
        most: 1,
      },
    ],
  };
}

const cell = (sync: SmallSync | undefined): string =>
  sync ? `${sync.asked} (${sync.pages} + ${sync.asked - sync.pages})` : '';
const mostOf = <K extends string>(all: ReadonlyArray<Record<K, number>>, key: K): number =>
  Math.max(...all.map((each) => each[key]));

function barsOf(shape: string, all: readonly SmallSync[]): Bar[] {
  const more = all.map(({ asked, pages }) => ({ pages, more: asked - pages, ratio: asked / pages }));
  const [few, many] = [more.filter(({ pages }) => pages <= FEW_PAGES), more.filter(({ pages }) => pages > FEW_PAGES)];
  return [
    { says: `${shape}: requests more than pages, up to ${FEW_PAGES} of them`, measured: mostOf(few, 'more'), most: 4 },
    {
      says: `${shape}: requests ÷ pages above`,
      measured: mostOf(many, 'ratio'),
      most: shape === 'whole days' ? 1.15 : 1.05,
    },
  ];
}

/** (b) Requests of a first sync, divided by the fewest that could carry the rows. Requests are counted without pacing. */
export const requests: Section = { title: 'Requests ÷ ideal', run };

async function run(size: Size): Promise<Report> {
  const clicks = size === 'quick' ? 4000 : 100_000;
  const found: Array<Case & { rows: number; asked: number; ratio: number; left: number; outcome: string }> = [];
  for (const one of CASES) {
    const sync = createSandboxSync({ clicks, traits: one.traits });
    one.live?.(sync);
    const { requests: asked, hasDoubts } = await sync.run();
    const rows = sync.sink.rows.size;
    const outcome = hasDoubts ? 'in part' : 'yes';
    found.push({ ...one, rows, asked, ratio: asked / Math.ceil(rows / 1000), left: sync.missing().length, outcome });
  }
  const small = await smallSyncs(size);
  return {
    tables: [
      ...small.tables,
      {
        head: ['service', 'rows', 'requests', '÷ ideal', 'left for the next poll', 'certified'],
        rows: found.map((one) => [
          ...[one.name, count(one.rows), one.asked, one.ratio.toFixed(3), one.left, one.outcome],
        ]),
      },
    ],
    bars:
      size === 'quick'
        ? []
        : [
            { says: 'requests ÷ ideal of a calm service', measured: found[0]?.ratio ?? Number.NaN, most: 1.05 },
            ...small.bars,
          ],
  };
}
