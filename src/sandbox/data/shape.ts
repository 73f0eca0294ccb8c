import { toIso } from '../../model/instant.ts';
import { addAliases } from './aliases.ts';
import { FIRST_NAMES, LAST_NAMES, WORKSPACE_ID } from './links.ts';
import { shareOf } from './random.ts';
import type { Click, Customer, JsonObject, Link, StoredEvent } from './types.ts';

/** One reading of the store: what the events of a response have in common. */
export interface Reading {
  baseUrl: string;
  count: number;
  now: number;
  /** Links in their current state; the events of a reading share them. */
  links: Map<Link, JsonObject>;
  reshapeLink?: ((record: JsonObject, link: Link, reading: Reading) => void) | undefined;
}

/** The value of required dates that are not set: the contract allows no null there. */
export const NEVER = '2099-12-31T00:00:00.000Z';
const MAY_BE_NEVER = ['expiresAt', 'disabledAt', 'testStartedAt', 'testCompletedAt'];
const EVENT_NAME = { clicks: 'click', leads: 'lead', sales: 'sale' } as const;

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
  };
  if (customer) record.customer = readCustomer(customer);
  if (sale) {
    const { first: _first, ...shown } = sale;
    record.sale = shown;
  }
  addAliases(record);
  return record;
}

function readClick({ at, link, place, agent, ...same }: Click): JsonObject {
  return { ...same, ...place, ...agent, timestamp: toIso(at), url: link.url, qr: same.trigger === 'qr' };
}

function sharedLink(link: Link, reading: Reading): JsonObject {
  const known = reading.links.get(link);
  if (known) return known;
  const read = readLink(link, reading);
  reading.links.set(link, read);
  return read;
}

export function readLink(link: Link, reading: Reading): JsonObject {
  const { partner, tags, utm, rest, createdAt, updatedAt, lastClicked, ...same } = link;
  const shortLink = link.key === '_root' ? `https://${link.domain}` : `https://${link.domain}/${link.key}`;
  const record: JsonObject = {
    ...same,
    ...utm,
    ...rest,
    programId: partner?.programId ?? null,
    partnerId: partner?.id ?? null,
    tags: tags.map((tag) => ({ ...tag })),
    tagId: tags[0]?.id ?? null,
    shortLink,
    qrCode: `${reading.baseUrl}/qr?url=${encodeURIComponent(shortLink)}`,
    workspaceId: WORKSPACE_ID,
    projectId: WORKSPACE_ID,
    lastClicked: lastClicked === null ? NEVER : toIso(lastClicked),
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
  };
  for (const name of MAY_BE_NEVER) record[name] ??= NEVER;
  reading.reshapeLink?.(record, link, reading);
  return record;
}

function readCustomer({ click: _click, purchases: _purchases, createdAt, ...same }: Customer): JsonObject {
  return {
    ...same,
    name: same.name ?? generatedName(same.id),
    avatar: `https://avatars.sandbox.invalid/${same.id}.png`,
    createdAt: toIso(createdAt),
  };
}

function generatedName(id: string): string {
  const index = Math.floor(shareOf(id, 'name') * FIRST_NAMES.length);
  return `${FIRST_NAMES[index]} ${LAST_NAMES[index % LAST_NAMES.length]}`;
}
