import type { Migration } from '../../../src/cursor/migrations/migrate.ts';
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

/** The steps by which the state came to be before 0.1.0, as they were: a state may have any number of them. Nothing is added here. */
export const EARLIER_MIGRATIONS: readonly Migration[] = [
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
