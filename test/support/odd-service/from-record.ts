import { parseInstant } from '../../../src/model/instant.ts';
import type { StreamName } from '../../../src/model/streams.ts';
import type { Click, Customer, Json, JsonObject, Link, NewEvent } from '../../../src/sandbox/data/types.ts';

/** An inserted record as an event: it keeps its text, and gets the fields that windows and filters use. */
export function eventFromRecord(stream: StreamName, record: JsonObject, fallbackAt: number): NewEvent {
  const click = object(record.click);
  const link = object(record.link);
  const at = parseInstant(record.timestamp) ?? fallbackAt;
  const facts: Click = {
    id: text(click.id ?? record.click_id),
    at: parseInstant(click.timestamp) ?? at,
    link: linkFacts(link, record),
    place: {
      continent: text(click.continent ?? record.continent),
      country: text(click.country ?? record.country),
      region: text(click.region),
      city: text(click.city ?? record.city),
    },
    agent: {
      device: text(click.device ?? record.device),
      browser: text(click.browser ?? record.browser),
      os: text(click.os ?? record.os),
    },
    trigger: typeof click.trigger === 'string' ? click.trigger : null,
    referer: text(click.referer),
    refererUrl: text(click.refererUrl),
    ip: text(click.ip ?? record.ip),
  };
  const customer = record.customer === undefined ? undefined : customerFacts(object(record.customer), facts, at);
  return {
    stream,
    at: Math.floor(at),
    id: stream === 'clicks' ? facts.id : text(record.eventId),
    click: facts,
    metadata: record.metadata ?? null,
    ...(customer && { customer }),
    raw: structuredClone(record),
  };
}

function linkFacts(link: JsonObject, record: JsonObject): Link {
  const partnerId = nullable(link.partnerId);
  return {
    id: text(link.id ?? record.link_id),
    domain: text(link.domain ?? record.domain),
    key: text(link.key ?? record.key),
    url: text(link.url ?? record.url),
    externalId: nullable(link.externalId),
    tenantId: nullable(link.tenantId),
    partner: partnerId === null ? null : { id: partnerId, programId: text(link.programId), groupId: '', tagIds: [] },
    tags: (Array.isArray(link.tags) ? link.tags : []).map((tag) => {
      const { id, name, color } = object(tag);
      return { id: text(id), name: text(name), color: text(color) };
    }),
    folderId: nullable(link.folderId),
    utm: {
      utm_source: nullable(link.utm_source),
      utm_medium: nullable(link.utm_medium),
      utm_campaign: nullable(link.utm_campaign),
      utm_term: nullable(link.utm_term),
      utm_content: nullable(link.utm_content),
    },
    rest: {},
    createdAt: 0,
    updatedAt: 0,
    lastClicked: null,
    clicks: 0,
    leads: 0,
    conversions: 0,
    sales: 0,
    saleAmount: 0,
  };
}

function customerFacts(customer: JsonObject, click: Click, at: number): Customer {
  return {
    id: text(customer.id),
    externalId: text(customer.externalId),
    name: nullable(customer.name),
    email: text(customer.email),
    country: text(customer.country),
    createdAt: at,
    click,
    purchases: 0,
  };
}

const object = (value: Json | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : String(value);
const nullable = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);
