import { readFileSync } from 'node:fs';

/** The SQL in docs/warehouse.md, unchanged. */
export const docsSql = (): string[] =>
  [...readFileSync('docs/warehouse.md', 'utf8').matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);

/** Whether the SQL needs partitioned tables. */
export const isAboutPartitions = (sql: string): boolean => /_2025_01|_keys/.test(sql);
