import { readFileSync } from 'node:fs';

/**
 * The service's contract is a document; tests read its tables, so that an unimplemented or changed row
 * fails a test.
 */
const text = readFileSync(new URL('../contract/link-attribution-api.md', import.meta.url), 'utf8');

export type ContractRow = Record<string, string>;

/** The rows of the table under a heading (given without its #s), keyed by the column names of the table. */
export function contractTable(heading: string): ContractRow[] {
  const lines = text.split('\n');
  const from = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (from < 0) throw new Error(`the contract has no heading "${heading}"`);
  const rows: string[][] = [];
  for (const line of lines.slice(from + 1)) {
    if (/^#+ /.test(line)) break;
    if (line.startsWith('|')) rows.push(cells(line));
    else if (rows.length > 0) break;
  }
  const [names, , ...body] = rows;
  if (!names || body.length === 0) throw new Error(`no table under "${heading}"`);
  return body.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i] ?? ''])));
}

const cells = (line: string): string[] =>
  line
    .slice(1, line.lastIndexOf('|'))
    .split('|')
    .map((cell) => cell.trim());
