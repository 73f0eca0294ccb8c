import { Option } from 'commander';
import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import { command, EXIT } from '../command.ts';

const EXAMPLES = `Examples:
  tributary schema --format sql        the tables, for a DBA to read or run
  tributary schema --format markdown   the data dictionary
  tributary schema --format dbt        sources for a dbt project
  tributary schema --format duckdb --lake ./data/lake | duckdb lake.duckdb
                                       the Parquet files as tables and views`;

type SchemaOptions = { format: SchemaFormat; lake: string; links?: boolean; json?: boolean };

export const registerSchema = command('schema', {
  does: 'print the tables and their columns',
  options: [
    new Option('--format <FORMAT>', 'the output format').choices(SCHEMA_FORMATS).default('sql'),
    ['--lake <PATH>', 'for duckdb: the folder of the Parquet files, or s3://bucket/prefix', './data/lake'],
    ['--links', 'for duckdb: the files have a listing of all links (links of the source in the config)'],
    ['--json', 'the same as --format json, with the fields that every --json has'],
  ],
  more: EXAMPLES,
  async run({ terminal, document }, { format, lake, links = false, json }: SchemaOptions) {
    const shape = { lake, isListed: links };
    terminal.out(json ? document(JSON.parse(printSchema('json')) as object) : printSchema(format, shape));
    return EXIT.done;
  },
});
