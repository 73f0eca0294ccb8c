import { readFileSync } from 'node:fs';

/** The SQL that docs/warehouse.md shows, as it stands there. */
export const docsSql = (): string[] =>
  [...readFileSync('docs/warehouse.md', 'utf8').matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);

/** What is about partitions needs tables that have some. */
export const isAboutPartitions = (sql: string): boolean => /_2025_01|_keys/.test(sql);
