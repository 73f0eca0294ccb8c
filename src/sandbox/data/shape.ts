import { toIso } from '../../model/instant.ts';
import { FIRST_NAMES, LAST_NAMES, WORKSPACE_ID } from './links.ts';
import { shareOf } from './random.ts';
import type { Click, Customer, JsonObject, Link, StoredEvent } from './types.ts';

/** One reading of the store: what the events of one answer have in common. */
export interface Reading {
  baseUrl: string;
  /** Increases with every request. */
  count: number;
  now: number;
  /** Links as they are now; the events of one reading share them. */
  links: Map<Link, JsonObject>;
  /** Changes a link that was made by the contract. */
  reshapeLink?: ((record: JsonObject, link: Link, reading: Reading) => void) | undefined;
}

/** The value of required dates that have none: the contract allows no null there. */
export const NEVER = '2099-12-31T00:00:00.000Z';
const EVENT_NAME = { clicks: 'click', leads: 'lead', sales: 'sale' } as const;

/** The event in the contract's shape, field by field. */
export function readEvent(event: StoredEvent, reading: Reading): JsonObject {
  const { click, customer, sale } = event;
  const record: JsonObject = {
    event: EVENT_NAME[event.stream],
    timestamp: toIso(event.at),
    ...(event.stream !== 'clicks' && {
      eventId: event.id,
      eventName: event.name ?? '',
      metadata: event.metadata ?? null,
    }),
    click: readClick(click),
    link: sharedLink(click.link, reading),
    ...aliases(click),
  };
  if (customer) record.customer = readCustomer(customer);
  if (sale) {
    const { amount, invoiceId, paymentProcessor, currency } = sale;
    record.sale = { amount, invoiceId, paymentProcessor, currency };
    record.saleAmount = amount;
    record.invoice_id = invoiceId;
    record.payment_processor = paymentProcessor;
  }
  return record;
}

function readClick(click: Click): JsonObject {
  const { id, at, link, place, agent, trigger, referer, refererUrl, ip } = click;
  return {
    id,
    timestamp: toIso(at),
    url: link.url,
    country: place.country,
    city: place.city,
    region: place.region,
    continent: place.continent,
    device: agent.device,
    browser: agent.browser,
    os: agent.os,
    trigger,
    referer,
    refererUrl,
    qr: trigger === 'qr',
    ip,
  };
}

/** The deprecated names at the top of the event. */
function aliases(click: Click): JsonObject {
  const { link, place, agent } = click;
  return {
    click_id: click.id,
    link_id: link.id,
    domain: link.domain,
    key: link.key,
    url: link.url,
    continent: place.continent,
    country: place.country,
    city: place.city,
    device: agent.device,
    browser: agent.browser,
    os: agent.os,
    qr: click.trigger === 'qr' ? 1 : 0,
    ip: click.ip,
  };
}

function sharedLink(link: Link, reading: Reading): JsonObject {
  const known = reading.links.get(link);
  if (known) return known;
  const read = readLink(link, reading);
  reading.links.set(link, read);
  return read;
}

export function readLink(link: Link, reading: Reading): JsonObject {
  const shortLink = link.key === '_root' ? `https://${link.domain}` : `https://${link.domain}/${link.key}`;
  const { expiresAt, disabledAt, testStartedAt, testCompletedAt, ...rest } = link.rest;
  const record: JsonObject = {
    id: link.id,
    domain: link.domain,
    key: link.key,
    url: link.url,
    externalId: link.externalId,
    tenantId: link.tenantId,
    programId: link.partner?.programId ?? null,
    partnerId: link.partner?.id ?? null,
    ...rest,
    expiresAt: expiresAt ?? NEVER,
    disabledAt: disabledAt ?? NEVER,
    tags: link.tags.map((tag) => ({ ...tag })),
    folderId: link.folderId,
    shortLink,
    qrCode: `${reading.baseUrl}/qr?url=${encodeURIComponent(shortLink)}`,
    utm_source: link.utm.source,
    utm_medium: link.utm.medium,
    utm_campaign: link.utm.campaign,
    utm_term: link.utm.term,
    utm_content: link.utm.content,
    testStartedAt: testStartedAt ?? NEVER,
    testCompletedAt: testCompletedAt ?? NEVER,
    workspaceId: WORKSPACE_ID,
    clicks: link.clicks,
    leads: link.leads,
    conversions: link.conversions,
    sales: link.sales,
    saleAmount: link.saleAmount,
    lastClicked: link.lastClicked === null ? NEVER : toIso(link.lastClicked),
    createdAt: toIso(link.createdAt),
    updatedAt: toIso(link.updatedAt),
    tagId: link.tags[0]?.id ?? null,
    projectId: WORKSPACE_ID,
  };
  reading.reshapeLink?.(record, link, reading);
  return record;
}

function readCustomer(customer: Customer): JsonObject {
  return {
    id: customer.id,
    externalId: customer.externalId,
    name: customer.name ?? generatedName(customer.id),
    email: customer.email,
    avatar: `https://avatars.sandbox.invalid/${customer.id}.png`,
    country: customer.country,
    createdAt: toIso(customer.createdAt),
  };
}

function generatedName(id: string): string {
  const index = Math.floor(shareOf(id, 'name') * FIRST_NAMES.length);
  return `${FIRST_NAMES[index]} ${LAST_NAMES[index % LAST_NAMES.length]}`;
}
