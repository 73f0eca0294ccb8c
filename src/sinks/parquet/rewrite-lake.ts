import { readEvolved } from '../../cursor/columns.ts';
import { evolvedStream } from '../../model/evolution.ts';
import { STREAMS, type StreamName } from '../../model/streams.ts';
import type { Rewrites } from '../sink.ts';
import { fitsSchema } from './format/index.ts';
import type { Lake } from './lake.ts';
import { visitFiles } from './rework.ts';
import { widestColumns } from './shape.ts';
import { sourcesIn } from './whereabouts.ts';

/** Files are written with the columns of their day. This gives old ones the columns of today, as nulls, and the kinds they have by now. */
export async function rewriteLake(lake: Lake, streams: readonly StreamName[]): Promise<Rewrites> {
  const done: Rewrites = {};
  for (const name of streams) {
    const count = { files: 0, rewritten: 0, rows: 0 };
    done[name] = count;
    const stream = evolvedStream(STREAMS[name], await readEvolved(lake.state, name));
    for (const source of await sourcesIn(lake.state, lake.name, name)) {
      await visitFiles(lake, { sink: lake.name, stream: name, source }, async ({ file }) => {
        const columns = widestColumns(stream, file.columns);
        count.files += 1;
        if (fitsSchema(file, columns)) return 'leave';
        count.rewritten += 1;
        count.rows += file.rows;
        return { columns, edits: new Map(), dropped: [] };
      });
    }
  }
  return done;
}
