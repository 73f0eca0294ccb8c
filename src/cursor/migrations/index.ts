import { LAKE_TABLES } from './lake.ts';
import { LEDGER_TABLES } from './ledger.ts';
import type { Migration } from './migrate.ts';
import { WORKER_TABLES } from './worker.ts';

/** Forward only: what was released is never edited. The first step also completes the states before 0.1.0. */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 27,
    name: 'the tables of 0.1.0',
    sql: (s) => [LEDGER_TABLES, WORKER_TABLES, LAKE_TABLES].map((tables) => tables(s)).join('\n'),
  },
];
