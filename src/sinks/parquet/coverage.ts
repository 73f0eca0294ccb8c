import { type CursorRow, cursorRow } from '../../cursor/cursors.ts';
import type { Track } from '../../cursor/ledger.ts';
import { lockCatalog } from './catalog.ts';
import type { Lake } from './lake.ts';

/** How far each stream is complete, beside the data, as rows that `read_json` takes. It may be a run behind, never ahead. */
const COVERAGE = '_coverage.json';

export async function showCoverage(lake: Lake, { source, stream }: Pick<Track, 'source' | 'stream'>): Promise<void> {
  const cursor = await cursorRow(lake.state, { source, stream, sink: lake.name });
  if (cursor) await replaceRow(lake, { source, stream }, cursor);
}

/** A source that is gone is not shown any more. */
export const hideCoverage = (lake: Lake, of: Pick<Track, 'source' | 'stream'>): Promise<void> => replaceRow(lake, of);

async function replaceRow(lake: Lake, of: Pick<Track, 'source' | 'stream'>, cursor?: CursorRow): Promise<void> {
  await lake.state.transaction(async (tx) => {
    await lockCatalog(tx, lake);
    // Here, because every run comes by: what is left of this file and of the catalogue is nobody else's to take away.
    await lake.store.sweep();
    const text = await lake.store.readText(COVERAGE);
    const rows = text === undefined ? [] : (JSON.parse(text) as CursorRow[]);
    const others = rows.filter(({ source, stream }) => source !== of.source || stream !== of.stream);
    if (!cursor && others.length === rows.length) return;
    const all = [...others, ...(cursor ? [cursor] : [])].sort((a, b) =>
      `${a.source} ${a.stream}` < `${b.source} ${b.stream}` ? -1 : 1,
    );
    await lake.store.writeText(COVERAGE, `${JSON.stringify(all, null, 2)}\n`);
  });
}
