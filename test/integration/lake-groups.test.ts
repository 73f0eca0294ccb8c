import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Kind } from '../../src/model/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { STREAMS, type Stream } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { readFooter } from '../../src/sinks/parquet/format/index.ts';
import { tidy } from '../../src/sinks/parquet/maintain.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { type LakePlace, lakeOf, lakePlace } from '../support/lake-place.ts';
import { filesIn, queryDuckdb } from '../support/lake-readers.ts';
import { certified, createWriter, MINUTE, rowOf } from '../support/sink-harness.ts';

/** The day of most events. */
const START = Date.UTC(2026, 10, 14);
const MOST_IN_GROUP = 20_000;

interface Event {
  id: string;
  at: number;
  country: string;
  grown: string;
  isMissing: boolean;
  /** The day of its file: that of the time when it was first seen. */
  home: string;
}

const lineOf = ({ id, at, country, grown, isMissing }: Event) =>
  `${Math.round(at * 1000)} ${id} ${country} ${grown} ${isMissing}`;
/** Ids are letters and digits, so that any two programs sort them alike. */
const inOrder = (a: Event, b: Event) => a.at - b.at || (a.id < b.id ? -1 : 1);

/** A seeded generator: fast-check draws the steps, and this the many rows of each. */
function dice(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A separate source in the lake: each step goes to the sink and to a model in memory, and `check` compares them. */
async function createHistory(place: LakePlace, seed = 1) {
  const roll = dice(seed);
  const writer = await createWriter(place, STREAMS.clicks);
  const { source, stream: name } = writer.lease;
  const sink = place.createSink();
  // For this history only: a lake keeps the widest kind that a column ever had.
  const column = `click_grown_${source.replace(/\W/g, '_')}`;
  const model = new Map<string, Event>();
  let stream: Stream = STREAMS.clicks;
  let commits = 0;
  let made = 0;
  const hasGrown = () => stream.columns.length > STREAMS.clicks.columns.length;
  const pick = (n: number): Event[] => {
    const all = [...model.values()];
    return all.length === 0 ? [] : Array.from({ length: n }, () => all[roll(all.length)] as Event);
  };
  // Ids in random order, so that rows of one instant do not come in the order of their ids.
  const times = (n: number, at: () => number) =>
    Array.from({ length: n }, () => ({ id: `${roll(1e6).toString(36)}x${++made}`, at: at() }));

  const commit = async (read: Array<{ id: string; at: number }>, window?: { start: number; end: number }) => {
    const country = `C${++commits % 7}`;
    const grown = hasGrown() ? String(commits) : '';
    const shown = new Map(read.map((one) => [one.id, one]));
    const batch = await sink.open(stream);
    const value = stream.columns.at(-1)?.kind === 'integer' ? commits : grown;
    await batch.write(
      [...shown.values()].map(({ id, at }) =>
        rowOf(stream, id, at, { click_country: country, ...(hasGrown() && { [column]: value }) }),
      ),
    );
    const spans = window ? [{ ...certified(window.start, window.end, shown.size), whole: true }] : [];
    // Each in its own run: within one, the newer of two times would win, and not the newer reading.
    await batch.commit(writer.advance({ runId: `run-${commits}`, spans }));
    for (const event of model.values())
      if (window && !shown.has(event.id) && event.at >= window.start && event.at < window.end) event.isMissing = true;
    for (const { id, at } of shown.values()) {
      const home = model.get(id)?.home ?? new Date(at).toISOString().slice(0, 10);
      model.set(id, { id, at, country, grown, isMissing: false, home });
    }
  };

  return {
    roll,
    times,
    commit,
    model,
    change: (n: number) => commit(pick(n).map(({ id, at }) => ({ id, at }))),
    move: (n: number) => commit(pick(n).map(({ id }) => ({ id, at: START + roll(1.5 * DAY_MS) }))),
    /** Of a window that is read completely, the service shows every second event; some missing ones return. */
    vanish(start: number, length: number) {
      const inside = [...model.values()].filter(({ at }) => at >= start && at < start + length);
      return commit(
        inside.filter((_, i) => i % 2 === commits % 2),
        { start, end: start + length },
      );
    },
    async grow() {
      const kind: Kind = hasGrown() ? 'text' : 'integer';
      stream = evolvedStream(STREAMS.clicks, [{ path: `click.${column}`, name: column, kind }]);
      await sink.prepare(stream);
    },
    async forget() {
      const [one] = pick(1);
      if (!one) return;
      await forget({ state: place.state, sinks: [sink], holder: 'a test' }, { source, kind: 'click', id: one.id });
      model.delete(one.id);
    },
    tidy: () => tidy(lakeOf(place), { source, stream: name }, 0),
    /** A row at a time that others share: often the start or end of a group. */
    edges: async (n: number) => {
      const edges = (await check()).flatMap(({ oldest, newest }) => [Number(oldest) / 1000, Number(newest) / 1000]);
      await commit(times(n, () => edges[roll(edges.length)] ?? START));
    },
    check,
  };

  /** Checks all invariants; returns the groups of every file. Footers are read twice: by us, and independently by DuckDB. */
  async function check(): Promise<Group[]> {
    const files = (await filesIn(place.folder)).filter((file) => file.endsWith(`/${source}.parquet`));
    const homeOf = ({ home }: Event) => `${name}/date=${home}/${source}.parquet`;
    const expected = [...model.values()].sort(inOrder);
    expect(files).toEqual([...new Set(expected.map(homeOf))].sort());
    const all: Group[] = [];
    for (const file of files) {
      const rows = await rowsIn(join(place.folder, file), column);
      const groups = await groupsIn(place.folder, file);
      const sizes = groups.map((group) => group.rows);
      expect(sizes.reduce((sum, n) => sum + n, 0)).toBe(rows.length);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(MOST_IN_GROUP);
      expect(Math.min(...sizes)).toBeGreaterThan(0);
      expect(groups.length).toBeLessThanOrEqual(rows.length / 2500 + 25);
      let from = 0;
      for (const group of groups) {
        const inside = rows.slice(from, from + group.rows);
        from += group.rows;
        const ids = inside.map(({ id }) => id).sort();
        const [oldest, newest] = [inside[0]?.micros, inside.at(-1)?.micros];
        expect(group).toEqual({ rows: inside.length, oldest, newest, firstId: ids[0], lastId: ids.at(-1) });
        expect(firstWrong(inside, inTimeAndId)).toBeUndefined();
      }
      // By time over all groups of the file: then groups do not overlap either.
      expect(firstWrong(rows, inTime)).toBeUndefined();
      // Compared as a short list of differences, not megabytes of equal rows.
      const lines = rows.sort(inTimeAndId).map(({ line }) => line);
      const wanted = expected.filter((event) => homeOf(event) === file).map(lineOf);
      const differing = wanted.findIndex((line, n) => line !== lines[n]);
      expect([lines.length, lines[differing]]).toEqual([wanted.length, wanted[differing]]);
      all.push(...groups);
    }
    return all;
  }
}

interface Group {
  rows: number;
  /** In microseconds. */
  oldest: unknown;
  newest: unknown;
  firstId: unknown;
  lastId: unknown;
}

async function groupsIn(folder: string, file: string): Promise<Group[]> {
  const open = await createFolderStore(folder).open(file);
  if (!open) throw new Error(`no ${file}`);
  const { groups } = await readFooter(open);
  await open.close();
  const theirs =
    await queryDuckdb(`select row_group_num_rows::int as rows, epoch_us(stats_min_value::timestamptz)::double as oldest,
    epoch_us(stats_max_value::timestamptz)::double as newest
    from parquet_metadata('${join(folder, file)}') where path_in_schema = 'timestamp' order by row_group_id`);
  const ours = groups.map(({ rows, ranges }) => {
    const [time, id] = [ranges.get('timestamp'), ranges.get('event_id')];
    const micros = [time?.min, time?.max].map((at) => Math.round(Number(at) * 1000));
    return { rows, oldest: micros[0], newest: micros[1], firstId: id?.min, lastId: id?.max };
  });
  expect(theirs).toEqual(ours.map(({ rows, oldest, newest }) => ({ rows, oldest, newest })));
  return ours;
}

interface Read {
  micros: number;
  id: string;
  line: string;
}

/** In file order. One text for each row, as in the model. */
async function rowsIn(path: string, column: string): Promise<Read[]> {
  // The file may be older than the column.
  const columns = await queryDuckdb(`describe select * from read_parquet('${path}')`);
  const isThere = columns.some(({ column_name }) => column_name === column);
  const found = await queryDuckdb(`select concat_ws(' ', epoch_us("timestamp"), event_id, click_country,
    coalesce(${isThere ? `${column}::varchar` : 'null'}, ''), _missing_since is not null) as line
    from read_parquet('${path}', file_row_number = true) order by file_row_number`);
  return found.map(({ line }) => {
    const [micros, id = ''] = String(line).split(' ', 2);
    return { micros: Number(micros), id, line: String(line) };
  });
}

const inTime = (a: Read, b: Read) => a.micros - b.micros;
const inTimeAndId = (a: Read, b: Read) => inTime(a, b) || (a.id < b.id ? -1 : 1);
const firstWrong = (rows: Read[], order: (a: Read, b: Read) => number) =>
  rows.find((row, i) => i > 0 && order(rows[i - 1] as Read, row) > 0);

/** In any order of rows, the files of a lake stay intact, sorted, and in few groups. */
let place: LakePlace;
beforeAll(async () => {
  place = await lakePlace({ compression: 'snappy' });
  await place.createSink().prepare(STREAMS.clicks);
});
afterAll(() => place.close());

/** The next steps of a sync. Sizes make groups fill up and split. */
const SIZE = fc.oneof(
  fc.integer({ min: 1, max: 30 }),
  fc.integer({ min: 1, max: 4000 }),
  fc.constantFrom(5000, 10_000),
);
const STEP = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('fill' as const),
      n: SIZE,
      rounds: fc.integer({ min: 1, max: 3 }),
      stretches: fc.constantFrom(1, 2, 8),
      isReverse: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('late', 'instant', 'edges'), n: SIZE }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('change', 'move', 'vanish', 'forget', 'tidy', 'grow'),
      n: fc.integer({ min: 1, max: 300 }),
    }),
  },
);

const FILL = { kind: 'fill', n: 10_000, rounds: 2, stretches: 2, isReverse: false } as const;
const REST = [
  'change',
  'move',
  'vanish',
  'grow',
  'change',
  'edges',
  'forget',
  'tidy',
  'grow',
  'move',
  'vanish',
  'late',
] as const;
const EVERY = [FILL, ...REST.map((kind) => ({ kind, n: 300 })), { ...FILL, n: 9, isReverse: true }];

it('keeps files intact, sorted and in few groups, with any history', async () => {
  const history = fc.tuple(fc.integer(), fc.array(STEP, { minLength: 8, maxLength: 10 }));
  await fc.assert(
    fc.asyncProperty(history, async ([seed, steps]) => {
      const lake = await createHistory(place, seed);
      const { roll, times, commit, check } = lake;
      for (const step of steps) {
        const start = START + roll(20) * 60 * MINUTE;
        if (step.kind === 'fill') {
          // Slices of all stretches in turn, like a backfill that reads them in parallel.
          const { rounds, stretches, isReverse } = step;
          const slice = DAY_MS / stretches / rounds;
          for (let i = 0; i < rounds * stretches; i++) {
            const round = Math.floor(i / stretches);
            const from = START + ((i % stretches) * rounds + (isReverse ? rounds - 1 - round : round)) * slice;
            await commit(times(Math.ceil(step.n / stretches), () => from + roll(slice)));
          }
        } else if (step.kind === 'late') await commit(times(step.n, () => START + roll(DAY_MS * 1000) / 1000));
        else if (step.kind === 'instant') await commit(times(step.n, () => start));
        else if (step.kind === 'vanish') await lake.vanish(start, step.n * MINUTE);
        else await lake[step.kind as 'change'](step.n);
        await check();
      }
    }),
    // Every kind of step at least once. Shrinking a failing history takes long, and its steps say enough.
    { numRuns: 2, examples: [[[1, EVERY]]], endOnFailure: true },
  );
});

describe('specific histories', () => {
  const HOUR = 60 * MINUTE;

  it('fills a group exactly, and adds to either side of its edges', async () => {
    const { times, commit, check } = await createHistory(place);
    // Even milliseconds first, then odd ones between them; the last would be out of range, and shares the time of another.
    for (const odd of [0, 1]) {
      const rows = times(10_000, () => 0);
      await commit(rows.map(({ id }, i) => ({ id, at: START + HOUR + Math.min(2 * i + odd, 19_998 - odd) })));
    }
    expect(await check()).toMatchObject([{ rows: MOST_IN_GROUP }]);
    for (const at of [0, 19_998, 19_999, -1, 10_000]) {
      await commit(times(2, () => START + HOUR + at));
      await check();
    }
  });

  it('keeps more rows of one instant than a group holds', async () => {
    const { times, commit, check, change } = await createHistory(place);
    for (let i = 0; i < 5; i++) await commit(times(i === 3 ? 1 : 9000, () => START + HOUR));
    await check();
    await change(50);
    await commit([...times(3, () => START), ...times(3, () => START + HOUR), ...times(3, () => START + 2 * HOUR)]);
    await check();
  });
});
