import { randomUUID } from 'node:crypto';
import { connect } from '../../dist/cursor/database.js';
import { acquireLease, holderOf } from '../../dist/cursor/leases.js';
import { STREAMS } from '../../dist/model/streams.js';
import { createParquetSink } from '../../dist/sinks/parquet/parquet-sink.js';
import { createFolderStore } from '../../dist/sinks/parquet/store/folder-store.js';

/**
 * Writes into a lake without end: `lake-child.mjs STATE_URL FOLDER FIRST`. Plain JavaScript on the built code, because it is started
 * fifty times. Says `commits N` before and `done N` after commit number N; what N holds follows from N alone.
 */
const [url, folder, first] = process.argv.slice(2);
const NOON = Date.UTC(2026, 10, 14, 12);
const HOUR = 3_600_000;
const stream = STREAMS.clicks;

function rowOf(id, at, country) {
  const given = { event: 'click', timestamp: at, event_id: id, click_id: id, click_country: country };
  const values = stream.columns.map(({ name }) => given[name] ?? null);
  return { id, at, values, extra: null, contradictions: [], misfits: [] };
}

const state = connect({ url, max: 3 });
const lease = await acquireLease(state, 'main', 'clicks', holderOf('test'));
const sink = createParquetSink({
  name: 'lake',
  state,
  scheme: 'day',
  compression: 'snappy',
  store: createFolderStore(folder),
});
for (let n = Number(first); ; n++) {
  const batch = await sink.open(stream);
  // Thirty that are new, over three days; one that is changed every time; and three that wander from day to day.
  const rows = Array.from({ length: 30 }, (_, i) => rowOf(`n${n}-${i}`, NOON + (i % 3) * 24 * HOUR + n, 'DE'));
  rows.push(rowOf('changes', NOON, `v${n}`));
  for (let i = 0; i < 3; i++) rows.push(rowOf(`wanders${i}`, NOON + n * HOUR, 'DE'));
  await batch.write(rows);
  process.stdout.write(`commits ${n}\n`);
  await batch.commit({
    source: 'main',
    stream: 'clicks',
    sink: 'lake',
    commitId: randomUUID(),
    runId: `run-${n}`,
    epoch: lease.epoch,
    since: NOON,
    spans: [],
    newestSeen: undefined,
  });
  process.stdout.write(`done ${n}\n`);
}
