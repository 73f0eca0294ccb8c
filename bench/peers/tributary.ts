import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { here } from './python.ts';
import { idsInFiles, idsInTable, lakeOf, type Tool } from './tool.ts';

const MAIN = here('../../dist/cli/main.js');
/** For a service without a limit: more than any tool requests. */
const UNLIMITED = { plan: 'enterprise', requestsPerSecond: 1000 };

const fromEnvironment = (name: string): string => `\${${name}}`;

/** The built Tributary with a minimal config. */
export const tributary = (kind: Tool['kind']): Tool => ({
  name: 'Tributary',
  into: kind,
  kind,
  async sync(job) {
    const { service, perSecond, place } = job;
    const config = {
      sources: {
        main: {
          baseUrl: service.baseUrl,
          apiKey: fromEnvironment('API_KEY'),
          ...(perSecond === null ? UNLIMITED : { plan: 'business' }),
          since: service.since.slice(0, '2026-11-01'.length),
          streams: { leads: {} },
        },
      },
      sinks: { it: kind === 'Postgres' ? { type: 'postgres' } : { type: 'parquet', path: lakeOf(job) } },
      state: { url: fromEnvironment('DATABASE_URL') },
    };
    // JSON is valid YAML.
    await writeFile(join(place.dir, 'tributary.yaml'), JSON.stringify(config));
    return {
      line: `'${process.execPath}' '${MAIN}' sync leads --config tributary.yaml`,
      dir: place.dir,
      env: { API_KEY: service.apiKey, DATABASE_URL: place.databaseUrl },
    };
  },
  ids: (job) =>
    kind === 'Postgres'
      ? idsInTable(job, 'attribution.leads', 'event_id')
      : idsInFiles(`${lakeOf(job)}/leads/**/*.parquet`, 'event_id'),
});
