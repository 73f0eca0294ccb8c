import { Option } from 'commander';
import { ENTITIES } from '../model/entities.ts';
import { STREAM_NAMES, STREAMS } from '../model/streams.ts';
import { toDbt, toJson, toMarkdown } from '../sinks/dictionary.ts';
import { entityTable, streamTable, tableDefinition } from '../sinks/postgres/table.ts';
import { coverageView, dailyLinkPerformanceView, viewDefinition } from '../sinks/postgres/views.ts';
import type { Register } from './command.ts';
import { EXIT } from './exit-codes.ts';

const EXAMPLES = `
Examples:
  tributary schema --format sql        the tables, for a DBA to read or run
  tributary schema --format markdown   the data dictionary
  tributary schema --format dbt        sources for a dbt project`;

const DEFAULT_SCHEMA = 'attribution';

const FORMATS = {
  sql: (schema: string) =>
    [
      `create schema if not exists ${schema};`,
      ...STREAM_NAMES.map((name) => tableDefinition(schema, streamTable(STREAMS[name]))),
      ...ENTITIES.map((entity) => tableDefinition(schema, entityTable(entity))),
      viewDefinition(schema, dailyLinkPerformanceView(schema)),
      coverageWhereCursorsAre(schema),
    ].join('\n\n'),
  markdown: () => toMarkdown(),
  json: () => toJson(),
  dbt: (schema: string) => toDbt(schema),
};

/** The one view that reads the state. On a database that has none yet it would fail, and take everything before it along. */
const coverageWhereCursorsAre = (
  schema: string,
): string => `-- Reads the cursors of the sink "warehouse". Where they are not in this database yet, the first sync makes it.
do $do$ begin
if to_regclass('tributary.cursors') is not null then execute $view$
${viewDefinition(schema, coverageView(schema, 'warehouse', true))}
$view$; end if; end $do$;`;

export const registerSchema: Register = (program, action) => {
  program
    .command('schema')
    .description('print the tables and their columns')
    .addOption(new Option('--format <FORMAT>', 'how to print them').choices(Object.keys(FORMATS)).default('sql'))
    .addOption(new Option('--json', 'the same as --format json'))
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal }, { format, json }: { format: keyof typeof FORMATS; json?: boolean }) => {
        terminal.out(FORMATS[json ? 'json' : format](DEFAULT_SCHEMA));
        return EXIT.done;
      }),
    );
};
