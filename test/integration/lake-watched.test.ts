import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parquetReadObjects } from 'hyparquet';
import { expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { lakePlace } from '../support/lake-place.ts';
import { filesIn, globOf, queryDuckdb } from '../support/lake-readers.ts';
import { createWriter, NOON, rowOf } from '../support/sink-harness.ts';

/** Readers run continuously while files are replaced. Each uses a glob, and knows nothing of us. */
const COMMITS = 40;
const place = await forThisFile(lakePlace({ compression: 'snappy' }));

type Look = () => Promise<string[]>;

const READERS: Readonly<Record<string, Look>> = {
  'DuckDB, one file after the other': async () =>
    idsOf(await queryDuckdb(`select event_id from read_parquet('${place.folder}/clicks/**/*.parquet')`)),
  // It reads every footer first, and opens the files again for their rows.
  'DuckDB, columns united by name': async () =>
    idsOf(await queryDuckdb(`select event_id from ${globOf(place.folder, 'clicks')}`)),
  hyparquet: async () => {
    const ids: string[] = [];
    for (const name of (await filesIn(place.folder)).filter((file) => file.endsWith('.parquet'))) {
      const { buffer, byteOffset, length } = await readFile(join(place.folder, name));
      const file = buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer;
      ids.push(...idsOf(await parquetReadObjects({ file, columns: ['event_id'] })));
    }
    return ids;
  },
};

const idsOf = (rows: readonly Record<string, unknown>[]): string[] => rows.map((row) => String(row.event_id));

it('is never torn, duplicated or short for a concurrent reader', async () => {
  const stream = STREAMS.clicks;
  const writer = await createWriter(place, stream);
  const click = (id: string, at: number, country = 'DE') => rowOf(stream, id, at, { click_country: country });
  const rowsOf = (n: number) => Array.from({ length: 8 }, (_, i) => click(`n${n}-${i}`, NOON + (i % 2) * DAY_MS + n));
  await writer.commit(rowsOf(0));
  let written = 0;
  const look = async (reader: Look): Promise<number> => {
    let times = 0;
    while (written < COMMITS) {
      const before = written;
      const ids = await reader();
      expect(new Set(ids).size).toBe(ids.length);
      const expected = Array.from({ length: before + 1 }, (_, n) => rowsOf(n).map(({ id }) => id)).flat();
      expect(expected.filter((id) => !ids.includes(id))).toEqual([]);
      times += 1;
      await sleep(1);
    }
    return times;
  };
  const write = async (): Promise<void> => {
    for (let n = 1; n <= COMMITS; n++) {
      // New ones at the end, a changed one at the start, and one that moves between the days.
      await writer.commit([
        ...rowsOf(n),
        click('changes', NOON, `v${n}`),
        click('wanders', NOON + (n % 2) * DAY_MS + n),
      ]);
      written = n;
    }
  };
  const [, ...times] = await Promise.all([write(), ...Object.values(READERS).map(look)]);
  for (const count of times) expect(count).toBeGreaterThan(COMMITS / 4);
});
