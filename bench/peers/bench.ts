import { loadavg } from 'node:os';
import { dltIntoDelta, dltIntoParquet, dltIntoPostgres, dltWithoutLag } from './dlt.ts';
import { measure, type Result, type Setting } from './measure.ts';
import { openPlaces } from './places.ts';
import { pythonWith } from './python.ts';
import { measuredWith, tables, writeReport } from './report.ts';
import { SERVERS, type ServerName } from './service.ts';
import { singer } from './singer.ts';
import type { Python, Tool } from './tool.ts';
import { tributary } from './tributary.ts';

/**
 * Tributary, dlt and a Singer tap on the same service and the same rows: `npm run bench:peers [-- --quick] [-- --write]`.
 * Needs Python 3.11, PyPI and GitHub; --quick omits the part without a limit, --write puts the tables into results.md.
 */
const isQuick = process.argv.includes('--quick');

/** The lag changes what a second sync finds, not the speed of a first one. */
const isAboutSpeed = (tool: Tool): boolean => tool !== dltWithoutLag;

const servers = Object.keys(SERVERS) as ServerName[];
const limited = servers.map((server): Setting => ({ server, rows: isQuick ? 4000 : 8000, perSecond: 4 }));
const unlimited = servers.map((server): Setting => ({ server, rows: 30_000, perSecond: null }));

const say = (text: string): boolean => process.stderr.write(`${text}\n`);
say('Python with dlt, the Singer SDK and the targets: made once, then kept');
const python: Python = { main: await pythonWith('requirements.txt'), parquet: await parquetTarget() };
const tools: readonly Tool[] = [
  tributary('Postgres'),
  dltIntoPostgres,
  dltWithoutLag,
  singer('Postgres'),
  tributary('Parquet'),
  dltIntoDelta,
  dltIntoParquet,
  ...(python.parquet === undefined ? [] : [singer('Parquet')]),
];
const loadBefore = loadavg();
const places = await openPlaces();
const results: Result[] = [];
try {
  for (const setting of isQuick ? limited : [...limited, ...unlimited]) {
    for (const tool of tools.filter((each) => setting.perSecond !== null || isAboutSpeed(each))) {
      const result = await measure(tool, setting, places, python);
      results.push(result);
      say(JSON.stringify({ tool: tool.name, into: tool.into, ...setting, ...result.figures }));
      if (result.failure !== undefined) say(result.failure);
    }
  }
} finally {
  await places.close();
}
const text = `${tables(results)}\n\n${await measuredWith(python, loadBefore)}\n`;
process.stdout.write(text);
if (process.argv.includes('--write')) await writeReport(text);

async function parquetTarget(): Promise<string | undefined> {
  try {
    return await pythonWith('requirements-parquet.txt');
  } catch (error) {
    say(`Singer's Parquet target is not measured: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
