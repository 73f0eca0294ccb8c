import { Option } from 'commander';
import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import { EXIT, type Register } from '../command.ts';

const EXAMPLES = `
Examples:
  tributary schema --format sql        the tables, for a DBA to read or run
  tributary schema --format markdown   the data dictionary
  tributary schema --format dbt        sources for a dbt project`;

export const registerSchema: Register = (program, action) => {
  program
    .command('schema')
    .description('print the tables and their columns')
    .addOption(new Option('--format <FORMAT>', 'the output format').choices(SCHEMA_FORMATS).default('sql'))
    .addOption(new Option('--json', '--format json in the envelope of every --json'))
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal, document }, { format, json }: { format: SchemaFormat; json?: boolean }) => {
        terminal.out(json ? document(JSON.parse(printSchema('json')) as object) : printSchema(format));
        return EXIT.done;
      }),
    );
};
