import type { AdvancedName, EventsQuery } from './params.ts';
import type { StoredEvent } from './types.ts';

type Value = string | null | undefined | readonly string[];

/** Where each parameter looks. A link without partner has no group: it matches no value and survives every exclusion. */
const LOOK: Record<AdvancedName, (event: StoredEvent) => Value> = {
  domain: ({ click }) => click.link.domain,
  linkId: ({ click }) => click.link.id,
  tenantId: ({ click }) => click.link.tenantId,
  tagId: ({ click }) => click.link.tags.map((tag) => tag.id),
  folderId: ({ click }) => click.link.folderId,
  partnerTagId: ({ click }) => click.link.partner?.tagIds,
  groupId: ({ click }) => click.link.partner?.groupId,
  partnerId: ({ click }) => click.link.partner?.id,
  country: ({ click }) => click.place.country,
  city: ({ click }) => click.place.city,
  region: ({ click }) => click.place.region,
  continent: ({ click }) => click.place.continent,
  device: ({ click }) => click.agent.device,
  browser: ({ click }) => click.agent.browser,
  os: ({ click }) => click.agent.os,
  trigger: ({ click }) => click.trigger,
  referer: ({ click }) => click.referer,
  refererUrl: ({ click }) => click.refererUrl,
  url: ({ click }) => click.link.url,
  utm_source: ({ click }) => click.link.utm.source,
  utm_medium: ({ click }) => click.link.utm.medium,
  utm_campaign: ({ click }) => click.link.utm.campaign,
  utm_term: ({ click }) => click.link.utm.term,
  utm_content: ({ click }) => click.link.utm.content,
};

export type Predicate = (event: StoredEvent) => boolean;

/** The one predicate of all filters, or undefined when nothing filters: then a page needs no scan. */
export function filterOf(
  query: EventsQuery,
  clickOfCustomer: (id: string) => string | undefined,
): Predicate | undefined {
  const tests: Predicate[] = [];
  for (const [name, { exclude, values }] of query.advanced) {
    const look = LOOK[name];
    tests.push((event) => holds(look(event), values) !== exclude);
  }
  const { key, externalId, customerId, programId, tagIds, root, qr, saleType, metadata } = query;
  if (key !== undefined) tests.push(({ click }) => click.link.key === key);
  if (externalId !== undefined) tests.push(({ click }) => click.link.externalId === externalId);
  if (programId !== undefined) tests.push(({ click }) => click.link.partner?.programId === programId);
  if (tagIds !== undefined) tests.push(({ click }) => click.link.tags.some((tag) => tagIds.has(tag.id)));
  if (root !== undefined) tests.push(({ click }) => (click.link.key === '_root') === root);
  if (qr !== undefined) tests.push(({ click }) => (click.trigger === 'qr') === qr);
  if (customerId !== undefined) {
    // A click carries no customer; the one that belongs to a customer is the click the customer came by.
    const clickId = clickOfCustomer(customerId);
    tests.push(({ customer, id }) => (customer ? customer.id === customerId : id === clickId));
  }
  // saleType is about sales only; on the other streams it selects nothing away.
  if (saleType !== undefined) tests.push(({ sale }) => !sale || sale.first === (saleType === 'new'));
  if (metadata !== undefined) tests.push((event) => metadataValue(event, metadata.key) === metadata.value);
  return tests.length === 0 ? undefined : (event) => tests.every((test) => test(event));
}

function holds(value: Value, wanted: ReadonlySet<string>): boolean {
  if (value === null || value === undefined) return false;
  return typeof value === 'string' ? wanted.has(value) : value.some((one) => wanted.has(one));
}

function metadataValue({ metadata }: StoredEvent, key: string): string | undefined {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return undefined;
  return Object.hasOwn(metadata, key) ? String(metadata[key]) : undefined;
}
