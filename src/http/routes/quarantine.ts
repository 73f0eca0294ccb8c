import type { Queryable } from '../../cursor/database.ts';
import { holderOf } from '../../cursor/leases.ts';
import { countQuarantined, dropQuarantined, listQuarantined, type Quarantined } from '../../cursor/quarantined.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import { createRedact } from '../../model/withhold.ts';
import { retryQuarantined } from '../../sync/retry-quarantined.ts';
import type { Quarantine, QuarantineHead, QuarantineRecord, QuarantineRetried } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { shortText, stream } from '../json-schema.ts';
import { limit, limitOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

const USUAL = 50;

type Deps = Pick<ControlDeps, 'state' | 'sinks' | 'streams'>;

export const quarantineRoutes = (deps: Deps): Route[] => [
  {
    method: 'GET',
    path: '/api/quarantine',
    summary: 'Records that could not be used, the newest first.',
    query: {
      source: shortText,
      stream,
      limit: limit(USUAL),
      before: { type: 'integer', minimum: 0, description: '`next` of the page before' },
    },
    answer: 'Quarantine',
    handle: (ask) => readQuarantine(deps.state, ask),
  },
  {
    method: 'GET',
    path: '/api/quarantine/{id}',
    summary: 'One of them, as it came. Personal data is masked.',
    answer: 'QuarantineRecord',
    handle: ({ params }) => readRecord(deps.state, params.id ?? ''),
  },
  {
    method: 'POST',
    path: '/api/quarantine/{id}/retry',
    summary:
      'Tries to use it once more: the rules may have changed since. What is sound now is written into every sink.',
    answer: 'QuarantineRetried',
    handle: ({ params }) => retry(deps, params.id ?? ''),
  },
  {
    method: 'DELETE',
    path: '/api/quarantine/{id}',
    summary: 'Deletes it for good.',
    status: 204,
    handle: ({ params }) => drop(deps, params.id ?? ''),
  },
];

async function readQuarantine(state: Queryable, ask: Ask): Promise<Quarantine> {
  const { source, stream, before } = ask.params;
  const most = limitOf(ask, USUAL);
  const filter = { source, stream, before: before === undefined ? undefined : Number(before), limit: most + 1 };
  const found = await listQuarantined(state, filter);
  const records = found.slice(0, most).map(toHead);
  const last = records.at(-1);
  return {
    total: await countQuarantined(state, { source, stream }),
    records,
    next: found.length > most && last ? String(last.id) : null,
  };
}

/** Whatever the settings keep: a page is looked at over shoulders, and its text is pasted into tickets. */
const mask = createRedact({ linkPassword: 'drop', ip: 'drop', customer: 'drop' });

async function readRecord(state: Queryable, id: string): Promise<QuarantineRecord> {
  const found = await findRecord(state, id);
  return { ...toHead(found), record: stringifyJson(mask(parseJson(found.record)), 2) };
}

async function retry({ state, sinks, streams }: Deps, id: string): Promise<QuarantineRetried> {
  const found = await findRecord(state, id);
  const { source, stream } = found;
  const configured = streams.find((one) => one.source === source && one.stream === stream);
  if (!configured)
    throw new Refusal(409, `the config has no ${source}/${stream} any more`, { kept: 'the record stays' });
  const { flatten, job } = configured;
  const how = { source, stream, unknownFields: job.unknownFields, flatten, records: [found] };
  const [retried] = await retryQuarantined({ state, sinks, holder: holderOf('control room') }, how);
  return { id: found.id, reason: retried?.reason ?? null };
}

async function drop({ state }: Deps, id: string): Promise<undefined> {
  await dropQuarantined(state, [(await findRecord(state, id)).id]);
  return undefined;
}

async function findRecord(state: Queryable, id: string): Promise<Quarantined> {
  const [found] = /^\d{1,15}$/.test(id) ? await listQuarantined(state, { ids: [Number(id)] }) : [];
  if (!found) throw new Refusal(404, 'there is no such record in quarantine');
  return found;
}

const toHead = ({ id, source, stream, reason, runId, firstAt, lastAt }: Quarantined): QuarantineHead => ({
  id,
  source,
  stream,
  reason,
  runId,
  firstAt: firstAt.toISOString(),
  lastAt: lastAt.toISOString(),
});
