import type { Column } from '../model/columns.ts';
import { ENTITIES, STREAM_NAMES, STREAMS } from '../model/streams.ts';
import { entityTable, streamTable, type Table, tableDefinition } from './postgres/table.ts';
import { coverageView, dailyLinkPerformanceView, type View, viewDefinition } from './postgres/views.ts';

/** The tables and their columns, as each reader wants them. */

/** A DBA, a person, a program, a dbt project. */
export const SCHEMA_FORMATS = ['sql', 'markdown', 'json', 'dbt'] as const;
export type SchemaFormat = (typeof SCHEMA_FORMATS)[number];

/** As every config has it that says nothing else. */
const SCHEMA = 'attribution';

export const printSchema = (format: SchemaFormat): string => PRINTERS[format]();

const PRINTERS: Readonly<Record<SchemaFormat, () => string>> = {
  sql: () =>
    [
      `create schema if not exists ${SCHEMA};`,
      ...STREAM_NAMES.map((name) => tableDefinition(SCHEMA, streamTable(STREAMS[name]))),
      ...ENTITIES.map((entity) => tableDefinition(SCHEMA, entityTable(entity))),
      viewDefinition(SCHEMA, dailyLinkPerformanceView(SCHEMA)),
      COVERAGE_WHERE_CURSORS_ARE,
    ].join('\n\n'),
  markdown: toMarkdown,
  json: toJson,
  dbt: () => toDbt(SCHEMA),
};

/** The one view that reads the state. On a database that has none yet it would fail, and take everything before it along. */
const COVERAGE_WHERE_CURSORS_ARE = `-- Reads the cursors of the sink "warehouse". Where they are not in this database yet, the first sync makes it.
do $do$ begin
if to_regclass('tributary.cursors') is not null then execute $view$
${viewDefinition(SCHEMA, coverageView(SCHEMA, 'warehouse', true))}
$view$; end if; end $do$;`;

/** The tables described for people and tools, from the same columns that make them. */

interface Described extends Table {
  details: ReadonlyMap<string, Column>;
}

const byName = (columns: readonly Column[]): ReadonlyMap<string, Column> =>
  new Map(columns.map((column) => [column.name, column]));

const TABLES: readonly Described[] = [
  ...STREAM_NAMES.map((name) => ({ ...streamTable(STREAMS[name]), details: byName(STREAMS[name].columns) })),
  ...ENTITIES.map((entity) => ({ ...entityTable(entity), details: byName(entity.columns) })),
];

const views = (schema: string): View[] => [coverageView(schema, '', true), dailyLinkPerformanceView(schema)];

const INTRO = `# Data dictionary

One table per stream, one row per event, key \`(_source, event_id)\`; \`links\` and \`customers\` as last seen; two views. Columns are
named after the path of the field in the service’s API. Columns marked *joined* are looked up by the service when an event is
read: they show how the link or the customer was at that time, and do not make an event count as changed. Fields that
nobody declared become columns of their own; \`tributary.columns\` lists them. This page is generated: \`npm run generate\`.`;

export function toMarkdown(): string {
  const [first, ...others] = TABLES.filter(({ name }) => name in STREAMS);
  const isShared = (row: string): boolean => others.every((table) => rowsOf(table).includes(row));
  const shared = first ? rowsOf(first).filter(isShared) : [];
  return [
    INTRO,
    '\n## Columns of clicks, leads and sales\n\nAll three tables have these; below, each table lists what it has besides.\n',
    ...COLUMNS_HEAD,
    ...shared,
    ...TABLES.flatMap((table) => markdownTable(table, shared)),
    ...views('attribution').flatMap(markdownView),
  ].join('\n');
}

const COLUMNS_HEAD = ['| column | type | from | |', '|---|---|---|---|'];

function markdownTable(table: Described, shared: readonly string[]): string[] {
  const { name, doc, key } = table;
  const rows = rowsOf(table);
  const own = name in STREAMS ? rows.filter((row) => !shared.includes(row)) : rows;
  return [
    `\n## ${name}\n\n${doc} Key \`(${key.join(', ')})\`.\n`,
    ...(own.length > 0 ? [...COLUMNS_HEAD, ...own] : ['No columns of its own.']),
  ];
}

const rowsOf = ({ columns, details }: Described): string[] =>
  columns.map((column) => {
    const { from = [], volatile } = details.get(column.name) ?? {};
    const paths = from.map(({ path }) => `\`${path}\``).join(', ');
    return `| \`${column.name}\` | ${column.type} | ${paths} | ${column.comment}${volatile ? ' *joined*' : ''} |`;
  });

function markdownView({ name, doc, columns }: View): string[] {
  return [
    `\n## ${name} (view)\n\n${doc}\n`,
    '| column | |',
    '|---|---|',
    ...Object.entries(columns).map(([column, comment]) => `| \`${column}\` | ${comment} |`),
  ];
}

export function toJson(): string {
  const tables = TABLES.map(({ name, doc, key, columns, details }) => ({
    name,
    doc,
    key,
    columns: columns.map((column) => {
      const { kind, from = [], deprecated, volatile, personal } = details.get(column.name) ?? {};
      return { ...column, kind, from: from.map(({ path }) => path), deprecated, volatile, personal };
    }),
  }));
  const described = views('attribution').map(({ name, doc, columns }) => ({ name, doc, columns }));
  return JSON.stringify({ tables, views: described }, null, 2);
}

/**
 * dbt sources: descriptions, tests on the keys, and freshness where it is proven, on `coverage`. In the form of dbt 1.10, which later
 * versions ask for, and with tests of dbt's own: no package has to be declared. Names of sources hold no slash.
 */
export function toDbt(schema: string): string {
  const lines = ['version: 2', 'sources:', `  - name: ${schema}`, '    tables:'];
  for (const { name, doc, key, columns } of TABLES) {
    lines.push(`      - name: ${name}`, `        description: ${JSON.stringify(doc)}`);
    lines.push('        data_tests:', '          - unique:', `              name: ${name}_have_one_row_per_key`);
    lines.push(`              arguments: { column_name: "${key.join(" || '/' || ")}" }`, '        columns:');
    for (const column of columns) {
      lines.push(`          - name: ${column.name}`, `            description: ${JSON.stringify(column.comment)}`);
      if (!column.nullable) lines.push('            data_tests: [not_null]');
    }
  }
  for (const { name, doc, columns } of views(schema)) {
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
