import type { Migration } from './migrate.ts';
import { AUDIT_TABLES } from './migrations/audit.ts';
import { BUDGET_STATE, BUDGET_TABLES } from './migrations/budgets.ts';
import { LAKE_TABLES } from './migrations/lake.ts';
import { HISTORY_BY_TIME, LEDGER_TABLES, PROMISE_IN_FULL, TRIES_GO_ON, TURNS } from './migrations/ledger.ts';
import { PROFILE_FACTS } from './migrations/profiles.ts';
import { ENDED_SESSIONS } from './migrations/sessions.ts';
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
  PROFILE_FACTS,
  PROMISE_IN_FULL,
];
