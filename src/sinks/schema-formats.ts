import type { Column } from '../model/columns.ts';
import { ENTITIES, STREAM_NAMES, STREAMS } from '../model/streams.ts';
import { duckdbViews } from './lake-views.ts';
import { daysTable } from './postgres/beside.ts';
import { entityTable, streamTable, type Table, tableDefinition } from './postgres/table.ts';
import { viewDefinition } from './postgres/upkeep/keep-views.ts';
import { viewsOf } from './postgres/views.ts';
import type { View } from './views/view.ts';

/** For a DBA, a reader, a program, a dbt project, and DuckDB over a lake. */
export const SCHEMA_FORMATS = ['sql', 'markdown', 'json', 'dbt', 'duckdb'] as const;
export type SchemaFormat = (typeof SCHEMA_FORMATS)[number];

const SCHEMA = 'attribution';

/** For DuckDB: the path of the Parquet files, and whether they include a listing of links. */
interface LakeShape {
  lake?: string;
  isListed?: boolean;
}

export const printSchema = (format: SchemaFormat, shape: LakeShape = {}): string => PRINTERS[format](shape);

const PRINTERS: Readonly<Record<SchemaFormat, (shape: LakeShape) => string>> = {
  sql: () =>
    [
      `create schema if not exists ${SCHEMA};`,
      ...STREAM_NAMES.map((name) => tableDefinition(SCHEMA, streamTable(STREAMS[name]))),
      ...ENTITIES.map((entity) => tableDefinition(SCHEMA, entityTable(entity))),
      tableDefinition(SCHEMA, daysTable),
      VIEWS_WHERE_THE_STATE_IS,
    ].join('\n\n'),
  markdown: toMarkdown,
  json: toJson,
  dbt: toDbt,
  duckdb: ({ lake = './data/lake', isListed = false }) => duckdbViews(SCHEMA, lake, isListed),
};

const VIEWS = viewsOf({ schema: SCHEMA, sink: 'warehouse', isStateHere: true });

/** The views read the state to tell what is complete. On a database without one they would fail and abort the whole script. */
const VIEWS_WHERE_THE_STATE_IS = `-- The views read the cursors of the sink "warehouse". Where they are not in this database yet, the first sync makes them.
do $do$ begin
if to_regclass('tributary.cursors') is not null then execute $view$
${VIEWS.map((view) => viewDefinition(SCHEMA, view)).join('\n\n')}
$view$; end if; end $do$;`;

interface Described extends Table {
  details: ReadonlyMap<string, Column>;
}

const byName = (columns: readonly Column[]): ReadonlyMap<string, Column> =>
  new Map(columns.map((column) => [column.name, column]));

const TABLES: readonly Described[] = [
  ...STREAM_NAMES.map((name) => ({ ...streamTable(STREAMS[name]), details: byName(STREAMS[name].columns) })),
  ...ENTITIES.map((entity) => ({ ...entityTable(entity), details: byName(entity.columns) })),
];

const INTRO = `# Data dictionary

One table per stream, one row per event; \`links\` and \`customers\` that had an event, as last seen; and views. A column is named after the path of its field
in the service’s API. *joined*: the service looks the value up when an event is read, so it shows the link or the customer as of that
read, and a new value does not make the event count as changed. *Not in the contract*: deployed services send it, the contract does not
name it. A field that nobody declared becomes a column of its own, listed in \`new_columns\`. This page is generated (\`npm run generate\`).`;

/** Describes each column once; columns that tables share come before the others. */
export function toMarkdown(): string {
  const streams = TABLES.filter(({ name }) => name in STREAMS);
  const shown = new Set<string>();
  const shared = (title: string, tables: readonly Described[]): string[] => {
    const [first] = tables;
    const isShared = (name: string): boolean => tables.every(({ columns }) => columns.some((one) => one.name === name));
    return [`\n## ${title}\n`, ...described(first?.columns.filter(({ name }) => isShared(name)) ?? [], first, shown)];
  };
  return [
    INTRO,
    '\n| table | one row per | key | columns |\n|---|---|---|---|',
    ...TABLES.map(
      ({ name, doc, key }) => `| \`${name}\` | ${rowPer(doc)} | \`(${key.join(', ')})\` | ${COLUMNS[name]} |`,
    ),
    ...shared('Columns of clicks, leads and sales', streams),
    ...shared('Columns of leads and sales', streams.slice(1)),
    ...shared('Columns of sales', streams.slice(2)),
    ...VIEWS.flatMap(markdownView(TABLES.flatMap(({ columns }) => columns))),
  ].join('\n');
}

const COLUMNS: Readonly<Record<string, string>> = {
  clicks: 'those of all three',
  leads: 'those of all three, of leads and sales',
  sales: 'those of all three, of leads and sales, of sales',
  links: '`_source`, every `link_*`, `_observed_at` (timestamptz): when it was last seen to have changed',
  customers: '`_source`, every `customer_*`, `_observed_at`',
};

const rowPer = (doc: string): string => doc.replace(/^One row per /, '').replace(/\.$/, '');

/** Rows of a table of columns. Deprecated names repeat a column, so one line lists them all. */
function described(columns: Table['columns'], table: Described | undefined, shown: Set<string>): string[] {
  const own = columns.filter(({ name }) => !shown.has(name));
  for (const { name } of own) shown.add(name);
  const aliases = own.flatMap(({ name, type, comment }) => {
    const [, now] = /^Deprecated, use (\w+)\./.exec(comment) ?? [];
    const other = own.find((column) => column.name === now);
    return now ? [`\`${name}\`${other?.type === type ? '' : ` (${type})`} for \`${now}\``] : [];
  });
  const rows = own
    .filter(({ comment }) => !comment.startsWith('Deprecated, use'))
    .map((column) => rowOf(column, table));
  // Four per line.
  const list = aliases.map((alias, i) => (i === 0 ? alias : i % 4 === 0 ? `,\n${alias}` : `, ${alias}`)).join('');
  const last = list === '' ? [] : ['', `Deprecated names, filled too: ${list}.`];
  return ['| column | type | from | |', '|---|---|---|---|', ...rows, ...last];
}

function rowOf(column: Table['columns'][number], table: Described | undefined): string {
  const { from = [], volatile } = table?.details.get(column.name) ?? {};
  const paths = from.map(({ path }) => `\`${path}\``).join(', ');
  return `| \`${column.name}\` | ${column.type} | ${paths} | ${column.comment}${volatile ? ' *joined*' : ''} |`;
}

/** A column with the same description as in a table or an earlier view is only listed, with a reference. */
function markdownView(columns: ReadonlyArray<{ name: string; comment: string }>): (view: View) => string[] {
  const describedIn = new Map(columns.map(({ name, comment }) => [`${name} ${comment}`, 'the tables']));
  return (view) => {
    const own: string[] = [];
    const elsewhere = new Map<string, string[]>();
    for (const [column, comment] of Object.entries(view.columns)) {
      const other = describedIn.get(`${column} ${comment}`);
      if (other) elsewhere.set(other, [...(elsewhere.get(other) ?? []), `\`${column}\``]);
      else own.push(`| \`${column}\` | ${comment} |`);
      if (!other) describedIn.set(`${column} ${comment}`, `\`${view.name}\``);
    }
    return [
      `\n## ${view.name} (view)\n\n${view.doc}`,
      ...[...elsewhere].map(([other, names]) => `\nAs in ${other}: ${names.join(', ')}.`),
      ...(own.length > 0 ? ['\n| column | |\n|---|---|', ...own] : []),
    ];
  };
}

function toJson(): string {
  const tables = TABLES.map(({ name, doc, key, columns, details }) => ({
    name,
    doc,
    key,
    columns: columns.map((column) => {
      const { kind, from = [], deprecated, volatile, personal } = details.get(column.name) ?? {};
      return { ...column, kind, from: from.map(({ path }) => path), deprecated, volatile, personal };
    }),
  }));
  const views = VIEWS.map(({ name, doc, columns }) => ({ name, doc, columns }));
  return JSON.stringify({ tables, views }, null, 2);
}

/**
 * dbt sources: descriptions, tests on the keys, and freshness on `coverage`, where it is proven. In the syntax of dbt 1.10, which later
 * versions require, and with dbt's built-in tests, so that no package has to be declared. Names of sources contain no slash.
 */
export function toDbt(): string {
  const where = `    schema: "{{ var('tributary_schema', '${SCHEMA}') }}"`;
  const lines = ['version: 2', 'sources:', `  - name: ${SCHEMA}`, where, '    tables:'];
  for (const { name, doc, key, columns } of TABLES) {
    lines.push(`      - name: ${name}`, `        description: ${JSON.stringify(doc)}`);
    lines.push('        data_tests:', '          - unique:', `              name: ${name}_have_one_row_per_key`);
    lines.push(`              arguments: { column_name: "${key.join(" || '/' || ")}" }`, '        columns:');
    for (const column of columns) {
      lines.push(`          - name: ${column.name}`, `            description: ${JSON.stringify(column.comment)}`);
      if (!column.nullable) lines.push('            data_tests: [not_null]');
    }
  }
  for (const { name, doc, columns } of VIEWS) {
    lines.push(`      - name: ${name}`, `        description: ${JSON.stringify(doc)}`);
    if (name === 'coverage') lines.push(...FRESHNESS);
    lines.push('        columns:');
    for (const [column, comment] of Object.entries(columns)) {
      lines.push(`          - name: ${column}`, `            description: ${JSON.stringify(comment)}`);
    }
  }
  return lines.join('\n');
}

const FRESHNESS = [
  '        config:',
  '          loaded_at_field: complete_through',
  '          freshness:',
  '            warn_after: { count: 1, period: hour }',
  '            error_after: { count: 6, period: hour }',
];
