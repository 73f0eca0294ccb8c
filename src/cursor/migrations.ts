import type { Migration } from './migrate.ts';
import { AUDIT_TABLES } from './migrations/audit.ts';
import { BUDGET_STATE, BUDGET_TABLES } from './migrations/budgets.ts';
import { HISTORY_BY_TIME } from './migrations/history.ts';
import { LAKE_TABLES } from './migrations/lake.ts';
import { LEDGER_TABLES } from './migrations/ledger.ts';
import { ENDED_SESSIONS } from './migrations/sessions.ts';
import { TRIES_GO_ON } from './migrations/tries.ts';
import { TURNS } from './migrations/turns.ts';
import { WORKER_TABLES } from './migrations/worker.ts';

/** The state's tables, forward only: what was released is never edited, only followed. */
export const MIGRATIONS: readonly Migration[] = [
  LEDGER_TABLES,
  TURNS,
  BUDGET_TABLES,
  LAKE_TABLES,
  WORKER_TABLES,
  HISTORY_BY_TIME,
  TRIES_GO_ON,
  AUDIT_TABLES,
  ENDED_SESSIONS,
  BUDGET_STATE,
];
