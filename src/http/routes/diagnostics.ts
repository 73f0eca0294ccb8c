import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import type { ControlDeps } from '../dependencies.ts';
import { FileAnswer, type Route, route } from '../route.ts';
import { limit, list, moment, named, object, oneOf, orNull, stream, text, z } from '../shapes.ts';

/** What the command line prints of the installation itself: doctor, config, schema, and how the schema grew. */

const Diagnosis = named(
  'Diagnosis',
  object({
    findings: list(
      object({
        level: oneOf(['ok', 'note', 'fault']),
        subject: text,
        says: text,
        fix: orNull(text),
        mend: orNull(oneOf(['config', 'service', 'later'])).describe('who can fix a fault'),
      }),
    ),
  }),
);
export type Diagnosis = z.infer<typeof Diagnosis>;

const PrintedConfig = named(
  'Config',
  z.looseObject({}).describe('as tributary config print shows it; secrets are masked'),
);

const SchemaChange = named(
  'SchemaChange',
  object({
    at: moment,
    source: text,
    stream,
    path: text.describe("the field in the service's answers"),
    column: text,
    kind: text,
    previousKind: orNull(text).describe('null: the column is new'),
    runId: text,
  }),
);
const SchemaChanges = named('SchemaChanges', object({ changes: list(SchemaChange) }));
export type SchemaChange = z.infer<typeof SchemaChange>;
export type SchemaChanges = z.infer<typeof SchemaChanges>;

type Deps = Pick<ControlDeps, 'state' | 'examine' | 'config' | 'signal'>;

const TYPES: Readonly<Record<SchemaFormat, string>> = {
  sql: 'application/sql; charset=utf-8',
  markdown: 'text/markdown; charset=utf-8',
  json: 'application/json; charset=utf-8',
  dbt: 'application/yaml; charset=utf-8',
};

export function diagnosticsRoutes({ state, examine, config, signal }: Deps): Route[] {
  let looking: Promise<Diagnosis> | undefined;
  const look = async (): Promise<Diagnosis> => {
    const found = await examine(signal);
    return {
      findings: found.map(({ level, subject, says, fix = null, mend = null }) => ({ level, subject, says, fix, mend })),
    };
  };
  return [
    route({
      method: 'GET',
      path: '/api/doctor',
      summary: 'Looks at everything that a sync needs, and says what to fix. It asks each service once.',
      role: 'operator',
      // It says itself what is away.
      uses: [],
      answer: Diagnosis,
      handle() {
        // One look serves all who ask meanwhile: it costs the service a request that no budget counts.
        looking ??= look().finally(() => {
          looking = undefined;
        });
        return looking;
      },
    }),
    route({
      method: 'GET',
      path: '/api/config',
      summary: 'The config as it is understood, with every default filled in and every secret masked.',
      role: 'read',
      answer: PrintedConfig,
      handle: async () => config as z.infer<typeof PrintedConfig>,
    }),
    route({
      method: 'GET',
      path: '/api/schema',
      summary: 'The tables and their columns: SQL, a dictionary, JSON, or dbt sources.',
      role: 'read',
      query: object({ format: oneOf(SCHEMA_FORMATS).default('sql') }),
      media: Object.values(TYPES),
      handle: async ({ query: { format } }) => new FileAnswer(TYPES[format], printSchema(format)),
    }),
    route({
      method: 'GET',
      path: '/api/schema-changes',
      summary: 'Columns that came, and columns that grew, the newest first.',
      role: 'read',
      query: object({ stream: stream.optional(), limit: limit(100) }),
      answer: SchemaChanges,
      async handle({ query }): Promise<SchemaChanges> {
        const rows = await state.query<Omit<SchemaChange, 'at'> & { at: Date }>({
          text: `
            select changed_at as at, source, stream, path, name as column, kind, previous_kind as "previousKind", run_id as "runId"
            from tributary.columns where $1::text is null or stream = $1 order by id desc limit $2`,
          values: [query.stream ?? null, query.limit],
        });
        return { changes: rows.map((row) => ({ ...row, at: row.at.toISOString() })) };
      },
    }),
  ];
}
