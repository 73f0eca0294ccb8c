import { parseInstant } from '../../../src/model/instant.ts';
import type { StreamName } from '../../../src/model/streams.ts';
import type { Click, Json, JsonObject, NewEvent } from '../../../src/sandbox/data/types.ts';

const NO_COUNTS = { clicks: 0, leads: 0, conversions: 0, sales: 0, saleAmount: 0, updatedAt: 0, lastClicked: null };

/** An inserted record as an event: shown unchanged, with what windows and filters need under its API names. */
export function eventFromRecord(stream: StreamName, record: JsonObject, fallbackAt: number): NewEvent {
  const at = parseInstant(record.timestamp) ?? fallbackAt;
  const [link, clicked, customer] = [record.link, record.click, record.customer].map(object) as Parts;
  const { tags, partnerId, programId } = link;
  const seen = { ...record, ...clicked };
  // A later lead or sale may belong to this click, and shows it as a generated one.
  const click = {
    ...seen,
    at: Math.floor(at),
    id: text(clicked.id ?? record.click_id),
    place: seen,
    agent: seen,
    link: {
      ...{ id: record.link_id, domain: record.domain, key: record.key, url: record.url },
      ...link,
      ...NO_COUNTS,
      createdAt: parseInstant(link.createdAt) ?? Math.floor(at),
      utm: link,
      tags: Array.isArray(tags) ? tags : [],
      partner: partnerId ? { id: partnerId, programId, tagIds: [] } : null,
    },
  } as unknown as Click;
  return {
    stream,
    at: Math.floor(at),
    id: stream === 'clicks' ? click.id : text(record.eventId),
    click,
    metadata: record.metadata ?? null,
    ...(record.customer !== undefined && { customer: customer as never }),
    raw: structuredClone(record),
  };
}

type Parts = [JsonObject, JsonObject, JsonObject];
const object = (value: Json | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined): string => (value === null || value === undefined ? '' : String(value));
