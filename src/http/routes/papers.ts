import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import type { Examination } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { oneOf } from '../json-schema.ts';
import { Plain, type Route } from '../route.ts';

/** What the command line prints of the installation itself: doctor, config, schema. */

type Deps = Pick<ControlDeps, 'examine' | 'config' | 'signal'>;

const TYPES: Readonly<Record<SchemaFormat, string>> = {
  sql: 'application/sql; charset=utf-8',
  markdown: 'text/markdown; charset=utf-8',
  json: 'application/json; charset=utf-8',
  dbt: 'application/yaml; charset=utf-8',
};

export function paperRoutes({ examine, config, signal }: Deps): Route[] {
  let looking: Promise<Examination> | undefined;
  const look = async (): Promise<Examination> => {
    const found = await examine(signal);
    return {
      findings: found.map(({ level, subject, says, fix = null, mend = null }) => ({ level, subject, says, fix, mend })),
    };
  };
  return [
    {
      method: 'GET',
      path: '/api/doctor',
      summary: 'Looks at everything that a sync needs, and says what to mend. It asks each service once.',
      answer: 'Examination',
      handle() {
        // One look serves all who ask meanwhile: it costs the service a request that no budget counts.
        looking ??= look().finally(() => {
          looking = undefined;
        });
        return looking;
      },
    },
    {
      method: 'GET',
      path: '/api/config',
      summary: 'The config as it is understood, with every default filled in and every secret masked.',
      answer: 'Config',
      handle: async () => config,
    },
    {
      method: 'GET',
      path: '/api/schema',
      summary: 'The tables and their columns: SQL, a dictionary, JSON, or dbt sources.',
      query: { format: { ...oneOf(...SCHEMA_FORMATS), default: 'sql' } },
      media: Object.values(TYPES),
      handle: async ({ params }) => {
        const format = (params.format ?? 'sql') as SchemaFormat;
        return new Plain(TYPES[format], printSchema(format));
      },
    },
  ];
}
