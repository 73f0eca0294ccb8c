import { ENTITIES } from '../model/entities.ts';
import { STREAM_NAMES, STREAMS } from '../model/streams.ts';
import { toDbt, toJson, toMarkdown } from './dictionary.ts';
import { entityTable, streamTable, tableDefinition } from './postgres/table.ts';
import { coverageView, dailyLinkPerformanceView, viewDefinition } from './postgres/views.ts';

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
