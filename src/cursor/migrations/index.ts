import { LAKE_TABLES } from './lake.ts';
import { LEDGER_TABLES } from './ledger.ts';
import type { Migration } from './migrate.ts';
import { WORKER_TABLES } from './worker.ts';

/**
 * The state's tables, forward only: what was released is never edited, only followed. The first step makes all tables of 0.1.0, and
 * completes those of the states before it, which took smaller steps.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 27,
    name: 'the tables of 0.1.0',
    sql: (s) => [LEDGER_TABLES, WORKER_TABLES, LAKE_TABLES].map((tables) => tables(s)).join('\n'),
  },
];
