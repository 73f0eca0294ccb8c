import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from '../../src/cursor/database/index.ts';
import { STREAMS as COLUMNS } from '../../src/model/streams.ts';
import { untilToday } from '../../src/sandbox/data/world.ts';
import { startSandbox } from '../support/odd-service/service.ts';
import { mustBeNone, openDesk, STREAMS, type StreamName, sourceOf, startState, withDatabase } from './built.ts';
import { type Found, must, type Part, withClosers } from './part.ts';
import { pythonVersions, pythonWith } from './tools.ts';

/**
 * One lake, of several groups of rows a file and of files with different columns, asked the same by readers that share no code with us. The
 * answers that count are those of the warehouse, which the same run filled.
 */

const READERS = ['pyarrow', 'polars', 'datafusion', 'chdb', 'duckdb', 'pyspark'] as const;
const PACKAGES = READERS.map((name) => (name === 'pyspark' ? 'pyspark==4.0.1' : name));
const SCRIPT = fileURLToPath(new URL('lake_reader.py', import.meta.url));

export const lakeReaders: Part = {
  name: 'readers',
  checks:
    'counts, sums, nulls, distinct values, extremes and filters over files of several row groups and of mixed columns',
  needs: `Java; Python with ${READERS.join(', ')}`,
  run: () => withClosers(askAll),
};

interface Question {
  what: 'count' | 'nulls' | 'distinct' | 'sum' | 'min' | 'max';
  column: string;
  kind: string;
  where: Array<[column: string, kind: string, op: '=' | '>=' | '<' | 'is null', value: unknown]>;
}

async function askAll(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('readers', PACKAGES);
  const state = await startState();
  opened(state.close);
  const traits = { nulls: true, unknownEnums: true, emptyStrings: true };
  const sandbox = await startSandbox({
    ...untilToday(1),
    plan: 'enterprise',
    rows: { clicks: 90_000, leads: 6000, sales: 3000 },
    days: 2,
    traits,
  });
  opened(sandbox.close);
  const { service } = sandbox;
  const desk = await openDesk(`${sourceOf(sandbox, '5d')}sinks:
  warehouse: { type: postgres, schema: attribution }
  lake: { type: parquet, path: ./lake, partition: day }
state: { url: "${state.url}" }
`);
  opened(desk.close);
  await desk.done('sync');
  // From here on records have fields that nobody declared: files of today get columns that those of yesterday lack.
  service.traits = { ...traits, unknownFields: true };
  for (const stream of STREAMS) service.arrive(stream, 700);
  await desk.done('sync');

  const faults: string[] = [];
  let asked = 0;
  for (const stream of STREAMS) {
    const { questions, answers } = await withDatabase(state.url, (db) => questionsFor(db, stream));
    asked += questions.length;
    for (const reader of READERS) {
      const input = JSON.stringify({ folder: join(desk.dir, 'lake', stream), questions });
      const out = await must(
        python,
        [SCRIPT, reader],
        { env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } },
        input,
      );
      const line = out.split('\n').find((one) => one.startsWith('ANSWERS ')) ?? 'ANSWERS []';
      const found = JSON.parse(line.slice(8)) as unknown[];
      for (const [i, question] of questions.entries()) {
        if (String(found[i]) !== String(answers[i]))
          faults.push(`${reader} says ${found[i]} instead of ${answers[i]} to ${stream} ${JSON.stringify(question)}`);
      }
    }
  }
  mustBeNone(faults.slice(0, 20), `${faults.length} answers differ`);
  return {
    versions: await pythonVersions(python, READERS),
    result: `${asked} questions to each, all answered as by the warehouse`,
  };
}

/** Of every column what its kind lets one ask, and filters that statistics, dictionaries and missing columns take part in. */
async function questionsFor(db: Database, stream: StreamName) {
  const evolved = await db.query<{ name: string; kind: string }>({
    text: 'select name, kind from tributary.columns where stream = $1',
    values: [stream],
  });
  if (evolved.length === 0) throw new Error(`${stream} has no column that came later`);
  const columns = [...COLUMNS[stream].columns.map(({ name, kind }) => ({ name, kind: kind as string })), ...evolved];
  const questions: Question[] = [{ what: 'count', column: 'event_id', kind: 'text', where: [] }];
  for (const { name, kind } of columns) {
    const ask = (what: Question['what'], where: Question['where'] = []) =>
      questions.push({ what, column: name, kind, where });
    ask('nulls');
    if (kind === 'text') ask('distinct');
    if (FILTERED.has(name) || evolved.some((column) => column.name === name)) {
      ask('count', [[name, kind, 'is null', null]]);
      if (kind === 'text')
        for (const value of await valuesOf(db, stream, name, kind)) ask('count', [[name, kind, '=', value]]);
    }
    if (kind === 'integer') for (const what of ['sum', 'min', 'max'] as const) ask(what);
    if (kind === 'timestamp') {
      for (const what of ['min', 'max'] as const) ask(what);
      const [from = 0, to = 0] = (await valuesOf(db, stream, name, kind)).map(Number).sort((a, b) => a - b);
      ask('count', [
        [name, kind, '>=', from],
        [name, kind, '<', to],
      ]);
    }
  }
  const answers: string[] = [];
  for (const question of questions) {
    const [row] = await db.query<{ answer: string | null }>({ text: sqlOf(question, stream) });
    answers.push(String(row?.answer ?? null));
  }
  return { questions, answers };
}

/** Few values, many values, none, and text beyond ASCII; the columns that came later are asked too. */
const FILTERED = new Set([
  'event_id',
  'click_country',
  'click_city',
  'click_referer',
  'link_id',
  'link_title',
  'customer_id',
  'event_name',
]);

const AT = (expression: string): string => `(extract(epoch from ${expression}) * 1000000)::bigint`;
const quoted = (name: string): string => `"${name}"`;

/** Two values of the column that lie apart. */
async function valuesOf(db: Database, stream: StreamName, name: string, kind: string): Promise<string[]> {
  const value = kind === 'timestamp' ? AT(quoted(name)) : quoted(name);
  const rows = await db.query<{ value: string }>({
    text: `select distinct ${value}::text as value from attribution.${stream}
      where ${quoted(name)} is not null and (event_id like '%a' or event_id like '%7') order by 1 limit 2`,
  });
  return rows.map((row) => row.value);
}

function sqlOf({ what, column, kind, where }: Question, stream: StreamName): string {
  const name = quoted(column);
  const asked = {
    count: 'count(*)',
    nulls: `count(*) - count(${name})`,
    distinct: `count(distinct ${name})`,
    sum: `sum(${name})`,
    min: kind === 'timestamp' ? AT(`min(${name})`) : `min(${name})`,
    max: kind === 'timestamp' ? AT(`max(${name})`) : `max(${name})`,
  }[what];
  const conditions = where.map(([of, ofKind, op, value]) => {
    if (op === 'is null') return `${quoted(of)} is null`;
    if (ofKind === 'timestamp') return `${AT(quoted(of))} ${op} ${value}`;
    return `${quoted(of)} ${op} '${String(value).replaceAll("'", "''")}'`;
  });
  return `select (${asked})::text as answer from attribution.${stream} where ${['true', ...conditions].join(' and ')}`;
}
