import { BOOKKEEPING, STREAM_NAMES, STREAMS, type Stream } from '../model/streams.ts';
import { tableColumns } from './postgres/table.ts';

/** The streams described for people and tools, from the same columns that make the tables. */

export function toMarkdown(): string {
  const intro = [
    '# Data dictionary',
    '',
    'One table per stream, key `(_source, event_id)`. Columns are named after the path of the field in the service’s API.',
    'Columns marked *joined* are looked up by the service when an event is read: they show how the link or the customer was at',
    'that time, and do not make an event count as changed. This page is generated: `npm run generate`.',
  ];
  return [...intro, ...STREAM_NAMES.flatMap((name) => ['', ...markdownTable(STREAMS[name])])].join('\n');
}

function markdownTable(stream: Stream): string[] {
  const details = new Map(stream.columns.map((column) => [column.name, column]));
  return [
    `## ${stream.name}`,
    '',
    stream.doc,
    '',
    '| column | type | from | |',
    '|---|---|---|---|',
    ...tableColumns(stream).map(({ name, type, comment }) => {
      const column = details.get(name);
      const from = column?.from.map(({ path }) => `\`${path}\``).join(', ') ?? '';
      return `| \`${name}\` | ${type} | ${from} | ${comment}${column?.volatile ? ' *joined*' : ''} |`;
    }),
  ];
}

export function toJson(): string {
  const streams = STREAM_NAMES.map((name) => {
    const { doc, columns } = STREAMS[name];
    return {
      name,
      doc,
      key: ['_source', 'event_id'],
      columns: [...columns.map((column) => ({ ...column, from: column.from.map(({ path }) => path) })), ...BOOKKEEPING],
    };
  });
  return JSON.stringify({ streams }, null, 2);
}

/** dbt sources: names, descriptions, and tests on the key. */
export function toDbt(schema: string): string {
  const lines = ['version: 2', 'sources:', `  - name: ${schema}`, '    loaded_at_field: _synced_at', '    tables:'];
  for (const name of STREAM_NAMES) {
    const stream = STREAMS[name];
    lines.push(`      - name: ${name}`, `        description: ${JSON.stringify(stream.doc)}`);
    lines.push('        tests:', '          - dbt_utils.unique_combination_of_columns:');
    lines.push('              combination_of_columns: [_source, event_id]', '        columns:');
    for (const column of tableColumns(stream)) {
      lines.push(`          - name: ${column.name}`, `            description: ${JSON.stringify(column.comment)}`);
      if (!column.nullable) lines.push('            tests: [not_null]');
    }
  }
  return lines.join('\n');
}
