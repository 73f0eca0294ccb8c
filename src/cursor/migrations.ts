import type { Migration } from './migrate.ts';
import { BUDGET_TABLES } from './migrations/budgets.ts';
import { LAKE_TABLES } from './migrations/lake.ts';
import { LEDGER_TABLES } from './migrations/ledger.ts';
import { TURNS } from './migrations/turns.ts';
import { WORKER_TABLES } from './migrations/worker.ts';

/** The state's tables, forward only: what was released is never edited, only followed. */
export const MIGRATIONS: readonly Migration[] = [LEDGER_TABLES, TURNS, BUDGET_TABLES, LAKE_TABLES, WORKER_TABLES];
