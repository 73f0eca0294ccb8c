import { EVENT_INDEX, LAKE_TABLES } from './lake.ts';
import {
  ATTESTATIONS,
  HISTORY_BY_TIME,
  LEDGER_TABLES,
  PROFILE_FACTS,
  PROMISE_IN_FULL,
  TRIES_GO_ON,
  TURNS,
} from './ledger.ts';
import type { Migration } from './migrate.ts';
import {
  AUDIT_TABLES,
  BUDGET_STATE,
  BUDGET_TABLES,
  ENDED_SESSIONS,
  INCIDENTS_OF_ANY_KIND,
  PRICED_ROWS,
  ROWS_BY_SINK,
  RUN_LOG,
  WORKER_TABLES,
  WORKSPACES,
} from './worker.ts';

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
  WORKSPACES,
  PRICED_ROWS,
  ATTESTATIONS,
  RUN_LOG,
  INCIDENTS_OF_ANY_KIND,
  ROWS_BY_SINK,
  EVENT_INDEX,
];
