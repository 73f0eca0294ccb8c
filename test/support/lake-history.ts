import { join } from 'node:path';
import { expect } from 'vitest';
import type { Kind } from '../../src/model/columns.ts';
import { evolvedStream } from '../../src/model/evolution.ts';
import { STREAMS, type Stream } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { readFooter } from '../../src/sinks/parquet/format/index.ts';
import { tidy } from '../../src/sinks/parquet/maintain.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { type LakePlace, lakeOf } from './lake-place.ts';
import { filesIn, queryDuckdb } from './lake-readers.ts';
import { certified, createWriter, rowOf } from './sink-harness.ts';

/** The day that most events are of. */
export const START = Date.UTC(2026, 10, 14);
export const MOST_IN_GROUP = 20_000;

interface Event {
  id: string;
  at: number;
  country: string;
  grown: string;
  isMissing: boolean;
  /** The day of the file that it is in: that of the time it was first seen with. */
  home: string;
}

const lineOf = ({ id, at, country, grown, isMissing }: Event) =>
  `${Math.round(at * 1000)} ${id} ${country} ${grown} ${isMissing}`;
/** Ids are plain letters and digits, so that any two programs sort them alike. */
const inOrder = (a: Event, b: Event) => a.at - b.at || (a.id < b.id ? -1 : 1);

/** The same numbers for the same seed: fast-check draws the steps, and this the many rows of each. */
function dice(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A source of its own in the lake: each step goes to the sink and to a model in memory, and `check` compares them. */
export async function createHistory(place: LakePlace, seed = 1) {
  const roll = dice(seed);
  const writer = await createWriter(place, STREAMS.clicks);
  const { source, stream: name } = writer.lease;
  const sink = place.createSink();
  // Of this history alone: a lake keeps the widest kind that a column ever had.
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
  // Ids in no order, so that rows of one instant do not come in the order of their ids.
  const times = (n: number, at: () => number) =>
    Array.from({ length: n }, () => ({ id: `${roll(1e6).toString(36)}x${++made}`, at: at() }));

  const commit = async (read: Array<{ id: string; at: number }>, whole?: { start: number; end: number }) => {
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
    const spans = whole ? [{ ...certified(whole.start, whole.end, shown.size), whole: true }] : [];
    // Each by another run: within one, the newer of two times would win, and not the newer reading.
    await batch.commit(writer.advance({ runId: `run-${commits}`, spans }));
    for (const event of model.values())
      if (whole && !shown.has(event.id) && event.at >= whole.start && event.at < whole.end) event.isMissing = true;
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
    /** Of a window that is read whole, the service shows every second event; some that were missing are back. */
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
    /** A row for a time at which others are already: where a group begins or ends, as likely as not. */
    edges: async (n: number) => {
      const edges = (await check()).flatMap(({ oldest, newest }) => [Number(oldest) / 1000, Number(newest) / 1000]);
      await commit(times(n, () => edges[roll(edges.length)] ?? START));
    },
    check,
  };

  /** All that must hold; returns the groups of every file. Footers are read twice: by us, and by DuckDB, which knows nothing of us. */
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
      // By time over the whole file: then groups do not overlap either.
      expect(firstWrong(rows, inTime)).toBeUndefined();
      // Compared as few words: what differs, and not megabytes of what does not.
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

/** In the order of the file. One text for each row, as the model makes it. */
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
