import { toIso } from '../../model/instant.ts';
import type { Traits } from '../traits.ts';
import { FIRST_NAMES, LAST_NAMES, WORKSPACE_ID } from './links.ts';
import { shareOf } from './random.ts';
import type { Click, Customer, Json, JsonObject, Link, StoredEvent } from './types.ts';

/** One reading of the store. `count` increases with every request; volatile values are derived from it. */
export interface Reading {
  traits: Traits;
  baseUrl: string;
  count: number;
  now: number;
  /** Links as they are now; the events of one reading share them. */
  links: Map<Link, JsonObject>;
}

export type Read = JsonObject;

/** The value of required dates that have none: the contract allows no null there. */
const NEVER = '2099-12-31T00:00:00.000Z';
const EVENT_NAME = { clicks: 'click', leads: 'lead', sales: 'sale' } as const;

/** The event in the contract's shape, field by field; traits that change the shape are applied afterwards. */
export function readEvent(event: StoredEvent, reading: Reading): Read {
  const { click, customer, sale } = event;
  const moment = event.stream !== 'clicks' && reading.traits.clickTimeIsEventTime ? event.at : click.at;
  const record: Read = {
    event: EVENT_NAME[event.stream],
    timestamp: toIso(event.at),
    ...(event.stream !== 'clicks' && {
      eventId: event.id,
      eventName: event.name ?? '',
      metadata: event.metadata ?? null,
    }),
    click: readClick(click, moment),
    link: sharedLink(click.link, reading),
    ...aliases(click),
  };
  if (customer) record.customer = readCustomer(customer, reading);
  if (sale) {
    const { amount, invoiceId, paymentProcessor, currency } = sale;
    record.sale = { amount, invoiceId, paymentProcessor, currency };
    record.saleAmount = amount;
    record.invoice_id = invoiceId;
    record.payment_processor = paymentProcessor;
  }
  return record;
}

function readClick(click: Click, moment: number): JsonObject {
  const { id, link, place, agent, trigger, referer, refererUrl, ip } = click;
  return {
    id,
    timestamp: toIso(moment),
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

export function readLink(link: Link, { traits, baseUrl, count, now }: Reading): JsonObject {
  const moved = traits.volatile ? count : 0;
  const shortLink = link.key === '_root' ? `https://${link.domain}` : `https://${link.domain}/${link.key}`;
  const { expiresAt, disabledAt, testStartedAt, testCompletedAt, password, ...rest } = link.rest;
  const date = (value: Json | undefined): Json => value ?? (traits.nulls ? null : traits.emptyStrings ? '' : NEVER);
  const lastClicked = link.lastClicked === null ? null : toIso(traits.volatile ? now + moved : link.lastClicked);
  return {
    id: link.id,
    domain: link.domain,
    key: link.key,
    url: link.url,
    externalId: link.externalId,
    tenantId: link.tenantId,
    programId: link.partner?.programId ?? null,
    partnerId: link.partner?.id ?? null,
    ...rest,
    expiresAt: date(expiresAt),
    disabledAt: date(disabledAt),
    password: traits.password ? `secret-${link.key}` : (password ?? null),
    tags: link.tags.map((tag) => ({ ...tag })),
    folderId: link.folderId,
    shortLink,
    qrCode: `${baseUrl}/qr?url=${encodeURIComponent(shortLink)}`,
    utm_source: link.utm.source,
    utm_medium: link.utm.medium,
    utm_campaign: link.utm.campaign,
    utm_term: link.utm.term,
    utm_content: link.utm.content,
    testStartedAt: date(testStartedAt),
    testCompletedAt: date(testCompletedAt),
    workspaceId: WORKSPACE_ID,
    clicks: link.clicks + moved,
    leads: link.leads + moved,
    conversions: link.conversions + moved,
    sales: link.sales + moved,
    saleAmount: link.saleAmount + moved * 100,
    lastClicked: date(traits.nulls && shareOf(link.id, 'nulls') < 0.3 ? null : lastClicked),
    createdAt: toIso(link.createdAt),
    updatedAt: toIso(traits.volatile ? now + moved : link.updatedAt),
    tagId: link.tags[0]?.id ?? null,
    projectId: WORKSPACE_ID,
  };
}

function readCustomer(customer: Customer, { traits, count }: Reading): JsonObject {
  if (traits.deletedCustomers && isDeleted(customer, traits.deletedCustomers)) {
    return {
      id: customer.id,
      externalId: customer.id,
      name: 'Deleted customer',
      email: null,
      avatar: null,
      country: null,
      createdAt: '1970-01-01T00:00:00.000Z',
    };
  }
  return {
    id: customer.id,
    externalId: customer.externalId,
    name: customer.name ?? generatedName(customer.id, traits.volatile ? count : 0),
    email: customer.email,
    avatar: `https://avatars.sandbox.invalid/${customer.id}.png`,
    country: customer.country,
    createdAt: toIso(customer.createdAt),
  };
}

const isDeleted = (customer: Customer, share: number): boolean => shareOf(customer.id, 'deleted') < share;

function generatedName(id: string, reading: number): string {
  const index = Math.floor(shareOf(id, 'name') * FIRST_NAMES.length) + reading;
  return `${FIRST_NAMES[index % FIRST_NAMES.length]} ${LAST_NAMES[index % LAST_NAMES.length]}`;
}
