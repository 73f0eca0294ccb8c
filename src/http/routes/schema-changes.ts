import type { SchemaChange, SchemaChanges } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { stream } from '../json-schema.ts';
import { limit, limitOf } from '../params.ts';
import type { Ask, Route } from '../route.ts';

const USUAL = 100;

export const schemaChangesRoute = (deps: Pick<ControlDeps, 'state'>): Route => ({
  method: 'GET',
  path: '/api/schema-changes',
  summary: 'Columns that came, and columns that grew, the newest first.',
  query: { stream, limit: limit(USUAL) },
  answer: 'SchemaChanges',
  handle: (ask) => readChanges(deps, ask),
});

async function readChanges({ state }: Pick<ControlDeps, 'state'>, ask: Ask): Promise<SchemaChanges> {
  const rows = await state.query<Omit<SchemaChange, 'at'> & { at: Date }>({
    text: `
      select changed_at as at, source, stream, path, name as column, kind, previous_kind as "previousKind", run_id as "runId"
      from tributary.columns where $1::text is null or stream = $1 order by id desc limit $2`,
    values: [ask.params.stream ?? null, limitOf(ask, USUAL)],
  });
  return { changes: rows.map((row) => ({ ...row, at: row.at.toISOString() })) };
}
