import type { Transaction } from '../../cursor/database/index.ts';
import { quoteIdent, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import type { Kind, Value } from '../../model/columns.ts';
import { toIso } from '../../model/instant.ts';
import { POSTGRES_TYPES } from '../table-columns.ts';
import { encodeCopy } from './copy-encoder.ts';

export interface Stage {
  name: string;
  columns: ReadonlyArray<{ name: string; kind: Kind }>;
}

/** Staged rows, which the server keeps until the end of the transaction, as an item of a FROM clause with an alias. */
export type Staged = (alias: string) => Sql;

/** Up to this many rows are sent as a parameter; a temp table costs round trips and catalog rows, and pays off for many rows. */
const FEW = 50;

/** @param rows From `createSanitizer`. */
export const sendStage = async (tx: Transaction, stage: Stage, rows: readonly Value[][]): Promise<Staged> =>
  rows.length <= FEW ? asParameter(stage, rows) : asTable(tx, stage, rows);

async function asTable(tx: Transaction, stage: Stage, rows: readonly Value[][]): Promise<Staged> {
  await tx.query(raw(`create temp table ${stage.name} (${definitions(stage)}) on commit drop`));
  const kinds = stage.columns.map(({ kind }) => kind);
  await tx.copyIn(`copy ${stage.name} from stdin (format binary)`, encodeCopy(kinds, rows));
  return (alias) => raw(`${stage.name} ${alias}`);
}

export function asParameter(stage: Stage, rows: readonly Value[][]): Staged {
  const keys = stage.columns.map(({ name }) => JSON.stringify(name));
  const objects = rows.map((values) => {
    const fields = stage.columns.map(({ kind }, i) => `${keys[i]}:${jsonOf(kind, values[i] ?? null)}`);
    return `{${fields.join(',')}}`;
  });
  const json = `[${objects.join(',')}]`;
  return (alias) => sql`json_to_recordset(${json}::json) as ${raw(alias)} (${raw(definitions(stage))})`;
}

/** Numbers are sent as text, which the column's type parses, so that JSON parsing cannot change their digits. */
function jsonOf(kind: Kind, value: Value): string {
  if (value === null) return 'null';
  if (kind === 'json') return value as string;
  return JSON.stringify(kind === 'timestamp' ? toIso(value as number) : String(value));
}

const definitions = ({ columns }: Stage): string =>
  columns.map(({ name, kind }) => `${quoteIdent(name)} ${POSTGRES_TYPES[kind]}`).join(', ');
