import type { Queryable } from '../../cursor/database.ts';
import { bare } from '../../model/extra.ts';
import { type Present, selectTable } from './table.ts';

/**
 * A table as it is now, or undefined where there is none. Its columns stand in an object without a prototype: a service may send
 * a field called `constructor`, and every object has one of those.
 */
export async function lookAt(tx: Queryable, schema: string, name: string): Promise<Present | undefined> {
  const [present] = await tx.query<Present>(selectTable(schema, name));
  return present && { ...present, columns: Object.assign(bare() as Record<string, string>, present.columns) };
}
