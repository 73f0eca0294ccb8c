import { holderOf } from '../../cursor/database/holders.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import {
  countQuarantined,
  dropQuarantined,
  listQuarantined,
  masked,
  type Quarantined,
} from '../../cursor/quarantine.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import { retryQuarantined } from '../../sync/maintain/retry-quarantined.ts';
import { count, HttpError, limit, moment, named, of, shortText, stream, z } from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const QuarantineHead = z.strictObject({
  id: count,
  ...of,
  reason: z.string(),
  runId: z.string(),
  firstAt: moment,
  lastAt: moment,
});
const Quarantine = named('Quarantine', {
  total: count,
  records: z.array(QuarantineHead),
  next: z.string().nullable().describe('`before` of the next page'),
});
const QuarantineRecord = named(
  'QuarantineRecord',
  QuarantineHead.extend({
    record: z
      .string()
      .describe(
        'indented JSON as text, since it may contain integers that JavaScript cannot represent; personal data is masked',
      ),
  }),
);
const QuarantineRetried = named('QuarantineRetried', {
  id: count,
  reason: z.string().nullable().describe('null: it was written to the tables; otherwise the reason it stays'),
});

type QuarantineHead = z.infer<typeof QuarantineHead>;
export type Quarantine = z.infer<typeof Quarantine>;
export type QuarantineRecord = z.infer<typeof QuarantineRecord>;

type Deps = Pick<ControlDeps, 'state' | 'sinks' | 'streams'>;

export const quarantineRoutes = (deps: Deps): Route[] => [
  route('GET /api/quarantine', {
    summary: 'Records that could not be used, newest first.',
    query: z.strictObject({
      source: shortText.optional(),
      stream: stream.optional(),
      limit: limit(50),
      before: count.optional().describe('`next` of the previous page'),
    }),
    answer: Quarantine,
    async handle({ query: { limit: most, ...query } }) {
      const found = await listQuarantined(deps.state, { ...query, limit: most + 1 });
      const records = found.slice(0, most).map(toHead);
      const total = await countQuarantined(deps.state, { source: query.source, stream: query.stream });
      return { total, records, next: found.length > most ? String(records.at(-1)?.id) : null };
    },
  }),
  route('GET /api/quarantine/{id}', {
    summary: 'One record, as the service sent it, with personal data masked.',
    answer: QuarantineRecord,
    async handle({ id }) {
      const found = await findRecord(deps.state, id);
      return { ...toHead(found), record: stringifyJson(masked(parseJson(found.record)), 2) };
    },
  }),
  route('POST /api/quarantine/{id}/retry', {
    summary:
      'Processes the record again, in case the rules have changed. If it is valid now, it is written to every sink.',
    answer: QuarantineRetried,
    audit: ({ id }) => ({ action: 'quarantine.retry', target: id }),
    handle: ({ id }) => retry(deps, id),
  }),
  route('DELETE /api/quarantine/{id}', {
    summary: 'Deletes the record permanently.',
    role: 'admin',
    status: 204,
    audit: ({ id }) => ({ action: 'quarantine.drop', target: id }),
    async handle({ id }) {
      await dropQuarantined(deps.state, [(await findRecord(deps.state, id)).id]);
      return undefined;
    },
  }),
];

async function retry({ state, sinks, streams }: Deps, id: string): Promise<z.infer<typeof QuarantineRetried>> {
  const found = await findRecord(state, id);
  const { source, stream } = found;
  const configured = streams.find((one) => one.source === source && one.stream === stream);
  if (!configured)
    throw new HttpError(409, `${source}/${stream} is no longer in the config`, { kept: 'the record stays' });
  const { flatten, job } = configured;
  const how = { source, stream, unknownFields: job.unknownFields, flatten, records: [found] };
  const [retried] = await retryQuarantined({ state, sinks, holder: holderOf('control room') }, how);
  return { id: found.id, reason: retried?.reason ?? null };
}

async function findRecord(state: Queryable, id: string): Promise<Quarantined> {
  const [found] = /^\d{1,15}$/.test(id) ? await listQuarantined(state, { ids: [Number(id)] }) : [];
  if (!found) throw new HttpError(404, 'there is no such record in quarantine');
  return found;
}

const toHead = ({ record: _, ...head }: Quarantined): QuarantineHead => head;
