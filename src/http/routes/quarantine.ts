import type { Queryable } from '../../cursor/database.ts';
import { countQuarantined, listQuarantined, type Quarantined } from '../../cursor/quarantined.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import { createRedact } from '../../model/withhold.ts';
import { stream } from '../api-schemas.ts';
import type { Quarantine, QuarantineHead, QuarantineRecord } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { shortText } from '../json-schema.ts';
import { limit, limitOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

const USUAL = 50;

export const quarantineRoutes = ({ state }: Pick<ControlDeps, 'state'>): Route[] => [
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
    handle: (ask) => readQuarantine(state, ask),
  },
  {
    method: 'GET',
    path: '/api/quarantine/{id}',
    summary: 'One of them, as it came. Personal data is masked.',
    answer: 'QuarantineRecord',
    handle: ({ params }) => readRecord(state, params.id ?? ''),
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
  const [found] = /^\d{1,15}$/.test(id) ? await listQuarantined(state, { ids: [Number(id)] }) : [];
  if (!found) throw new Refusal(404, 'there is no such record in quarantine');
  return { ...toHead(found), record: stringifyJson(mask(parseJson(found.record)), 2) };
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
