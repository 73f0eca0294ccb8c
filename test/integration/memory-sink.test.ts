import { connect, type Database } from '../../src/cursor/database/index.ts';
import { withoutForgotten } from '../../src/cursor/forgotten.ts';
import type { CountRows } from '../../src/cursor/holdings/window-rows.ts';
import { checkFence } from '../../src/cursor/leases.ts';
import { applyAdvance } from '../../src/cursor/ledger.ts';
import { quarantine } from '../../src/cursor/quarantine.ts';
import type { Value } from '../../src/model/columns.ts';
import { parseJson } from '../../src/model/json.ts';
import { databaseNow } from '../../src/sinks/files/event-index.ts';
import { columnsOf } from '../../src/sinks/files/partition-file.ts';
import { type Books, createSinkOn } from '../support/memory-sink.ts';
import { createMemoryTable, type MemoryTable } from '../support/memory-table.ts';
import { stateDatabase } from '../support/postgres.ts';
import type { SinkPlace } from '../support/sink-harness.ts';
import { sinkSuite } from '../support/sink-suite.ts';

/** The sink of the simulations, with the same state as every other sink. */

const booksIn =
  (state: Database, table: MemoryTable): Books =>
  ({ advance, rejected, stream, rows, write }) =>
    state.transaction(async (tx) => {
      const fence = await checkFence(tx, advance);
      const kept = await withoutForgotten(tx, advance.source, stream, rows);
      const receipt = write(kept, await databaseNow(tx));
      await quarantine(tx, advance, rejected);
      const count: CountRows = async (windows) => table.count(stream, advance.source, windows);
      await applyAdvance(tx, fence, advance, { added: [], removed: [], count, isAfterCrash: true });
      return receipt;
    });

async function memoryPlace(): Promise<SinkPlace> {
  const home = await stateDatabase();
  const state = connect({ url: home.url });
  const table = createMemoryTable();
  return {
    state,
    createSink: () => createSinkOn(table, booksIn(state, table)),
    readRows: async (stream) => {
      const columns = columnsOf(stream);
      const asRead = (value: Value, kind: string | undefined): Value =>
        kind === 'json' && value !== null ? (parseJson(String(value)) as Value) : value;
      return table
        .read(stream)
        .map((row) => Object.fromEntries(columns.map(({ name, kind }, i) => [name, asRead(row[i] ?? null, kind)])));
    },
    async close() {
      await state.close();
      await home.drop();
    },
  };
}

sinkSuite('memory', memoryPlace);
