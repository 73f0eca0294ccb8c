import { Option } from 'commander';
import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import { EXIT, type Register } from '../command.ts';

const EXAMPLES = `
Examples:
  tributary schema --format sql        the tables, for a DBA to read or run
  tributary schema --format markdown   the data dictionary
  tributary schema --format dbt        sources for a dbt project
  tributary schema --format duckdb --lake ./data/lake | duckdb lake.duckdb
                                       the Parquet files as tables and views`;

type SchemaOptions = { format: SchemaFormat; lake: string; links?: boolean; json?: boolean };

export const registerSchema: Register = (program, action) => {
  program
    .command('schema')
    .description('print the tables and their columns')
    .addOption(new Option('--format <FORMAT>', 'the output format').choices(SCHEMA_FORMATS).default('sql'))
    .option('--lake <PATH>', 'for duckdb: the folder of the Parquet files, or s3://bucket/prefix', './data/lake')
    .option('--links', 'for duckdb: the files have a listing of all links (links of the source in the config)')
    .addOption(new Option('--json', 'the same as --format json, with the fields that every --json has'))
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ terminal, document }, { format, lake, links = false, json }: SchemaOptions) => {
        const shape = { lake, isListed: links };
        terminal.out(json ? document(JSON.parse(printSchema('json')) as object) : printSchema(format, shape));
        return EXIT.done;
      }),
    );
};
