import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { containers } from './containers.ts';
import { dbt } from './dbt.ts';
import { iceberg } from './iceberg/iceberg.ts';
import { icebergRest } from './iceberg/rest.ts';
import { icebergWriters } from './iceberg/writers.ts';
import { kubernetes } from './kubernetes.ts';
import { lakeReaders } from './lake-readers.ts';
import { objectStores } from './object-stores.ts';
import { orchestrators } from './orchestrators.ts';
import { closeShared, type Found, Missing, type Part } from './part.ts';
import { postgresVersions } from './postgres-versions.ts';
import { servers } from './servers.ts';

/**
 * `npm run interop [-- NAME… --write]`: Tributary as it is built, with the real things that it meets in the field. What the machine lacks
 * is skipped, with the reason. `--write` keeps the table in test/interop/results.md.
 */
const PARTS: readonly Part[] = [
  ...objectStores,
  lakeReaders,
  iceberg,
  icebergWriters,
  icebergRest,
  dbt,
  ...kubernetes,
  ...postgresVersions,
  ...servers,
  ...orchestrators,
  ...containers,
];

const PAGE = 'test/interop/results.md';
const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Row {
  part: Part;
  outcome: 'works' | 'fails' | 'skipped';
  versions: string;
  text: string;
  table?: string | undefined;
}

async function tryPart(part: Part): Promise<Row> {
  try {
    const { versions, result, table }: Found = await part.run();
    return { part, outcome: 'works', versions, text: result, table };
  } catch (error) {
    const outcome = error instanceof Missing ? 'skipped' : 'fails';
    return { part, outcome, versions: '', text: error instanceof Error ? error.message : String(error) };
  }
}

const cell = (text: string): string => text.split('\n')[0]?.replaceAll('|', '\\|') ?? '';

const tableOf = (rows: readonly Row[], day: string): string =>
  [
    '| part | what was tried | with | on | result |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ part, outcome, versions, text }) =>
        `| ${part.name} | ${part.checks} | ${cell(versions)} | ${day} | ${outcome}: ${cell(text)} |`,
    ),
  ].join('\n');

/** Rows of parts that were not run now stay as they were. */
function merged(page: string, rows: readonly Row[], day: string): string {
  const lines = tableOf(rows, day).split('\n');
  const [head, rule] = lines;
  const ours = new Map(lines.slice(2).map((line) => [line.split(' ')[1], line]));
  const old = page.match(/^\| (?!part\b)[\w-]+ \|.*$/gm) ?? [];
  const all = new Map([...old.map((line) => [line.split(' ')[1], line] as const), ...ours]);
  const order = PARTS.map(({ name }) => all.get(name)).filter((line) => line !== undefined);
  const withRows = page.replace(/(<!-- table -->\n)[\s\S]*(<!-- end -->)/, (_, begin, end) =>
    [`${begin}${head}`, rule, ...order, end].join('\n'),
  );
  return rows.reduce(
    (text, { part: { name }, table }) =>
      table === undefined
        ? text
        : text.replace(
            new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*(<!-- end ${name} -->)`),
            (_, begin, end) => `${begin}${table}\n${end}`,
          ),
    withRows,
  );
}

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith('--'));
const odd = names.filter((name) => !PARTS.some((part) => part.name.startsWith(name)));
if (odd.length > 0) {
  say(
    `there is no part ${odd.join(', ')}. There are:\n${PARTS.map(({ name, checks, needs }) => `  ${name}: ${checks} (needs ${needs})`).join('\n')}`,
  );
  process.exit(2);
}
const chosen = PARTS.filter((part) => names.length === 0 || names.some((name) => part.name.startsWith(name)));
const rows: Row[] = [];
for (const part of chosen) {
  say(`${part.name}: ${part.checks} …`);
  const row = await tryPart(part);
  rows.push(row);
  say(`${part.name}: ${row.outcome}${row.versions && `, ${row.versions}`}: ${row.text}`);
}
await closeShared();
const day = new Date().toISOString().slice(0, 10);
const ran = rows.filter(({ outcome }) => outcome !== 'skipped');
say(
  `\n${tableOf(rows, day)}\n\n${rows.map(({ table }) => table ?? '').join('\n')}\non Node ${process.version}, ${process.platform} ${process.arch}, ${availableParallelism()} cores`,
);
if (args.includes('--write')) await writeFile(PAGE, merged(await readFile(PAGE, 'utf8'), ran, day));
process.exitCode = rows.some(({ outcome }) => outcome === 'fails') ? 1 : 0;
