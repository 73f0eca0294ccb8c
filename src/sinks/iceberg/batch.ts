import { lastCommit } from '../../cursor/cursors.ts';
import type { Transaction } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import type { Row } from '../../model/flatten.ts';
import { entitiesOf, type Stream } from '../../model/streams.ts';
import { resolveInDoubt } from '../in-doubt-commit.ts';
import { databaseNow, enterTrack, settleTrack } from '../parquet/event-index.ts';
import { type Batch, type Receipt, ShapeChanged } from '../sink.ts';
import { lockTable } from './catalog.ts';
import { changeTable } from './change-table.ts';
import { currentSnapshot } from './format/metadata.ts';
import { type Design, entityDesign, streamDesign } from './format/schema.ts';
import { mergeEntity } from './merge-entities.ts';
import { indexTable, mergeEvents } from './merge-events.ts';
import { COMMIT, provenSummary, saysSame } from './proven.ts';
import { loadTable, type Table } from './table.ts';
import { type Draft, inDraft, type Warehouse } from './warehouse.ts';

/** A lease is renewed by its fence; files can take longer than it lasts. */
const BEAT_MS = 5000;

/**
 * Rows are gathered and written in one transaction of the state: files first, which nobody sees; then ledger and cursor; last the
 * catalog, which names them. A crash anywhere before COMMIT leaves files that no snapshot names, and nothing else.
 */
export function openBatch(warehouse: Warehouse, stream: Stream): Batch {
  const { state } = warehouse;
  const rows: Row[] = [];

  const write = async (tx: Transaction, draft: Draft, advance: Advance, rejected: Parameters<typeof quarantine>[2]) => {
    // Before the fence: whoever waits behind a long commit goes on renewing its lease meanwhile.
    await lockTable(tx, warehouse, stream.name);
    await checkFence(tx, advance);
    const kept = await withoutForgotten(tx, advance.source, stream, rows);
    const table = await preparedTable(tx, warehouse, streamDesign(stream));
    const { id: track, isUnsettled: isNew } = await enterTrack(tx, advance);
    const isBehind = !warehouse.catalog.isInState && toldBy(table, advance) !== (await lastCommit(tx, advance));
    if (isNew || isBehind) await indexTable(tx, warehouse, table, track, advance.source);
    const beat = createBeat(tx, advance);
    const { receipt, added, removed } = await mergeEvents(tx, {
      ...{ draft, table, track, stream, rows: kept, advance, beat },
    });
    await storeEntities(tx, { draft, stream, source: advance.source, rows: kept, beat });
    await quarantine(tx, advance, rejected);
    await applyAdvance(tx, advance);
    const summary = await provenSummary(tx, advance);
    const isSame = saysSame(currentSnapshot(table.metadata)?.summary ?? {}, summary);
    // Elsewhere every commit leaves its name: that is how a table is known to be ahead of the state.
    if (added.length + removed.length > 0 || !isSame || !warehouse.catalog.isInState) {
      const operation = removed.length === 0 ? 'append' : 'overwrite';
      const told = { ...summary, [`${COMMIT}${advance.source}`]: advance.commitId };
      await changeTable(tx, draft, table, { operation, added, removed, summary: told });
    }
    await settleTrack(tx, track);
    return receipt;
  };

  return {
    async write(more) {
      rows.push(...more);
    },
    async commit(advance, rejected = []) {
      const isThere = async (): Promise<boolean> => (await lastCommit(state, advance)) === advance.commitId;
      return inDraft<Receipt>(
        warehouse,
        (tx, draft) => write(tx, draft, advance, rejected),
        (attempt) => resolveInDoubt(attempt, (again) => state.transaction(again), isThere),
      );
    },
    async abort() {
      rows.length = 0;
    },
  };
}

const toldBy = ({ metadata }: Table, { source }: Advance): string | undefined =>
  currentSnapshot(metadata)?.summary[`${COMMIT}${source}`];

async function preparedTable(tx: Transaction, warehouse: Warehouse, design: Design): Promise<Table> {
  const table = await loadTable(tx, warehouse, design);
  if (!table) throw new ShapeChanged(`${warehouse.namespace}.${design.name}`, {});
  return table;
}

async function storeEntities(
  tx: Transaction,
  {
    draft,
    stream,
    ...rest
  }: { draft: Draft; stream: Stream; source: string; rows: readonly Row[]; beat(): Promise<void> },
): Promise<void> {
  if (rest.rows.length === 0) return;
  const now = await databaseNow(tx);
  // In the same order everywhere, behind the stream's own table: two commits never wait for each other.
  for (const entity of entitiesOf(stream)) {
    await lockTable(tx, draft.warehouse, entity.name);
    const table = await preparedTable(tx, draft.warehouse, entityDesign(entity));
    const { added, removed } = await mergeEntity({ draft, table, entity, stream, now, ...rest });
    if (added.length + removed.length === 0) continue;
    const operation = removed.length === 0 ? 'append' : 'overwrite';
    await changeTable(tx, draft, table, { operation, added, removed, summary: {} });
  }
}

function createBeat(tx: Transaction, advance: Advance): () => Promise<void> {
  let last = Date.now();
  return async () => {
    if (Date.now() - last < BEAT_MS) return;
    await checkFence(tx, advance);
    last = Date.now();
  };
}
