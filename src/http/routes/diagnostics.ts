import { readBudgets, readBudgetUse } from '../../cursor/budgets.ts';
import { isoOf, sql } from '../../cursor/database/sql.ts';
import { toIso } from '../../model/instant.ts';
import { printSchema, SCHEMA_FORMATS, type SchemaFormat } from '../../sinks/schema-formats.ts';
import { count, figure, limit, listOf, moment, named, of, stream, z } from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { FileAnswer, type Route, route } from '../route.ts';

const Diagnosis = named('Diagnosis', {
  findings: listOf({
    level: z.enum(['ok', 'note', 'fault']),
    subject: z.string(),
    says: z.string(),
    fix: z.string().nullable(),
    fixBy: z.nullable(z.enum(['config', 'service', 'later'])).describe('who can fix a fault'),
  }),
});
export type Diagnosis = z.infer<typeof Diagnosis>;

const PrintedConfig = named(
  'Config',
  z.looseObject({}).describe('as tributary config print shows it; secrets are masked'),
);

const SchemaChange = named('SchemaChange', {
  at: moment,
  ...of,
  path: z.string().describe("the field in the service's answers"),
  column: z.string(),
  kind: z.string(),
  previousKind: z.string().nullable().describe('null: the column is new'),
  runId: z.string(),
});
const SchemaChanges = named('SchemaChanges', { changes: z.array(SchemaChange) });
type SchemaChange = z.infer<typeof SchemaChange>;
export type SchemaChanges = z.infer<typeof SchemaChanges>;

const Budget = named('Budget', {
  now: moment,
  minutes: count,
  step: count,
  keys: listOf({
    sources: z.array(z.string()).describe('the sources that use the key; empty: a key that is no longer in the config'),
    perSecond: figure,
    pausedSeconds: figure.nullable().describe('after a 429: how long requests are still paused'),
    points: listOf({
      at: moment,
      requests: count,
      byLane: z.strictObject({ fresh: count, repair: count, backfill: count }),
      tooManyRequests: count,
      pauses: count,
      share: figure.describe('of the requests that the budget allowed'),
    }).describe('intervals without requests have no point'),
  }),
});
export type Budget = z.infer<typeof Budget>;
export type KeyBudget = Budget['keys'][number];

const WEEK = 7 * 24 * 60;
const BudgetQuery = z.strictObject({
  minutes: z.int().min(1).max(WEEK).default(1440),
  step: z.int().min(1).max(WEEK).default(15),
});

type Deps = Pick<ControlDeps, 'state' | 'keys' | 'examine' | 'config' | 'signal'>;

const TYPES: Readonly<Record<SchemaFormat, string>> = {
  sql: 'application/sql; charset=utf-8',
  markdown: 'text/markdown; charset=utf-8',
  json: 'application/json; charset=utf-8',
  dbt: 'application/yaml; charset=utf-8',
  duckdb: 'application/sql; charset=utf-8',
};

export function diagnosticsRoutes(deps: Deps): Route[] {
  const { state, examine, config, signal } = deps;
  let looking: Promise<Diagnosis> | undefined;
  const look = async (): Promise<Diagnosis> => {
    const found = await examine(signal);
    return { findings: found.map(({ fix = null, fixBy = null, ...finding }) => ({ ...finding, fix, fixBy })) };
  };
  return [
    route('GET /api/doctor', {
      summary: 'Checks everything that a sync needs, and reports what to fix. It sends each service one request.',
      role: 'operator',
      // The doctor itself reports dependencies that are down.
      uses: [],
      answer: Diagnosis,
      handle() {
        // Concurrent requests share one check, because it sends a request that no budget counts.
        looking ??= look().finally(() => {
          looking = undefined;
        });
        return looking;
      },
    }),
    route('GET /api/config', {
      summary: 'The effective config, with defaults filled in and secrets masked.',
      answer: PrintedConfig,
      handle: async () => config as z.infer<typeof PrintedConfig>,
    }),
    route('GET /api/schema', {
      summary: 'The tables and their columns: SQL, a dictionary, JSON, or dbt sources.',
      query: z.strictObject({ format: z.enum(SCHEMA_FORMATS).default('sql') }),
      media: Object.values(TYPES),
      handle: async ({ query: { format } }) => new FileAnswer({ type: TYPES[format], body: printSchema(format) }),
    }),
    route('GET /api/schema-changes', {
      summary: 'Columns that were added or widened, newest first.',
      query: z.strictObject({ stream: stream.optional(), limit: limit(100) }),
      answer: SchemaChanges,
      async handle({ query }): Promise<SchemaChanges> {
        const changes = await state.query<SchemaChange>(sql`
          select ${isoOf('changed_at')} as at, source, stream, path, name as column, kind, previous_kind as "previousKind", run_id as "runId"
          from tributary.columns where ${query.stream}::text is null or stream = ${query.stream} order by id desc limit ${query.limit}`);
        return { changes };
      },
    }),
    route('GET /api/budget', {
      summary: 'How the request budget of each key was used by all processes, with the 429s.',
      query: BudgetQuery,
      answer: Budget,
      handle: ({ query }) => readBudget(deps, query),
    }),
  ];
}

/** A key is identified by its sources. Not even its digest is returned, because nobody needs it. */
async function readBudget({ state, keys }: Deps, { minutes, step }: z.infer<typeof BudgetQuery>): Promise<Budget> {
  const now = await readBudgets(state);
  const used = await readBudgetUse(state, { minutes, step });
  const isOurs = (keyHash: string): boolean => keys.some(({ hash }) => hash === keyHash);
  const shown = now.filter(({ keyHash }) => isOurs(keyHash) || used.some((use) => use.keyHash === keyHash));
  return {
    now: toIso(Date.now()),
    minutes,
    step,
    keys: shown.map(({ keyHash, perSecond, pausedSeconds }) => ({
      sources: [...(keys.find(({ hash }) => hash === keyHash)?.sources ?? [])],
      perSecond,
      pausedSeconds,
      points: used
        .filter((use) => use.keyHash === keyHash)
        .map(({ keyHash: _, perSecond: __, from: at, ...point }) => ({ at, ...point })),
    })),
  };
}
