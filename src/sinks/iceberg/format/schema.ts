import type { Kind } from '../../../model/columns.ts';
import { widen } from '../../../model/evolution.ts';
import { type FileColumn, leavesOf } from '../../parquet/format/index.ts';
import { type Design, ICEBERG_TYPES } from '../../table-columns.ts';

export interface Schema {
  type: 'struct';
  'schema-id': number;
  'identifier-field-ids': readonly number[];
  fields: readonly Field[];
}

export interface Field {
  id: number;
  name: string;
  required: boolean;
  type: string;
  doc?: string;
}

export interface Present {
  schema: Schema;
  lastColumnId: number;
  json: ReadonlySet<string>;
  /** Fields of earlier schemas by name: a field that another program dropped or renamed gets its id, and so its values, back. */
  former?: ReadonlyMap<string, Field>;
}

export interface Evolved extends Present {
  /** Widened columns. Iceberg cannot promote an integer to text, so they get a new field id and files are rewritten. */
  widened: readonly string[];
  isChanged: boolean;
}

/** Existing fields keep their ids; new ones get the next id. Columns that only the table has stay, after the others. */
export function evolveSchema(design: Design, present: Present | undefined): Evolved {
  const before = new Map(present?.schema.fields.map((field) => [field.name, field]));
  const kindBefore = new Map(present && columnsIn(present).map(({ name, kind }) => [name, kind]));
  let lastColumnId = present?.lastColumnId ?? 0;
  const widened: string[] = [];
  const json = new Set(present?.json);
  const fields: Field[] = [];
  for (const column of design.columns) {
    const was = kindBefore.get(column.name);
    const kind = was === undefined ? column.kind : widen(was, column.kind);
    const isWidened = was !== undefined && was !== kind;
    if (isWidened) widened.push(column.name);
    if (kind === 'json') json.add(column.name);
    for (const leaf of leavesOf([{ ...column, kind }])) {
      const former = present?.former?.get(leaf.name);
      const type = ICEBERG_TYPES[leaf.type === 'double' ? 'number' : leaf.type];
      const lost = former?.type === type ? former : undefined;
      const held = isWidened ? undefined : (before.get(leaf.name) ?? lost);
      fields.push({
        id: held?.id ?? ++lastColumnId,
        name: leaf.name,
        // Existing rows have no value for a new column.
        required: held ? held.required : present === undefined && !leaf.nullable,
        type,
        doc:
          leaf.name === column.name ? column.doc : `All digits of ${column.name}, where a double does not hold them.`,
      });
    }
  }
  const names = new Set(fields.map(({ name }) => name));
  const ids = new Set(fields.map(({ id }) => id));
  const kept = (present?.schema.fields ?? []).filter(({ name, id }) => !names.has(name) && !ids.has(id));
  const all = [...fields, ...kept];
  const schema: Schema = {
    type: 'struct',
    'schema-id': 0,
    'identifier-field-ids': design.key.map((name) => all.find((field) => field.name === name)?.id ?? 0),
    fields: all,
  };
  const isChanged = JSON.stringify(present?.schema.fields) !== JSON.stringify(all) || json.size !== present?.json.size;
  return { schema, lastColumnId, json, widened, isChanged };
}

/** `string` is text here: JSON columns are listed in a table property. */
const kindOf = (type: string): Kind | undefined =>
  (Object.keys(ICEBERG_TYPES) as Kind[]).find((kind) => ICEBERG_TYPES[kind] === type);

export function columnsIn({ schema, json }: Pick<Present, 'schema' | 'json'>): FileColumn[] {
  const byName = new Map(schema.fields.map((field) => [field.name, field]));
  const columns: FileColumn[] = [];
  for (const { id, name, type, required } of schema.fields) {
    const kind = json.has(name) ? 'json' : kindOf(type);
    if (kind === undefined) throw new RangeError(`column ${name} is of type ${type}, which no column here has`);
    const [, exact] = leavesOf([{ name, kind, nullable: !required }]);
    const exactId = exact && byName.get(exact.name)?.id;
    if (exact && exactId !== undefined) byName.delete(exact.name);
    if (byName.delete(name)) {
      const fieldIds = exactId === undefined ? [id] : [id, exactId];
      columns.push({ name, kind, nullable: !required, fieldIds });
    }
  }
  return columns;
}
