import type { StreamName } from '../../model/streams.ts';

/** JSON as the service writes it; integers that a double cannot hold are BigInt. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

type Texts<Name extends string> = Record<Name, string>;
export type Place = Texts<'continent' | 'country' | 'region' | 'city'>;
export type Agent = Texts<'device' | 'browser' | 'os'>;
export type Tag = Texts<'id' | 'name' | 'color'>;
export type Partner = Texts<'id' | 'programId' | 'groupId'> & { tagIds: readonly string[] };

/** One object that all events of the link share: a change appears on every event that is read later. */
export interface Link extends Texts<'id' | 'domain' | 'key' | 'url'> {
  externalId: string | null;
  tenantId: string | null;
  partner: Partner | null;
  tags: readonly Tag[];
  folderId: string | null;
  utm: Record<`utm_${'source' | 'medium' | 'campaign' | 'term' | 'content'}`, string | null>;
  /** Fields that nothing filters by, already in the shape of the API. */
  rest: JsonObject;
  createdAt: number;
  updatedAt: number;
  lastClicked: number | null;
  clicks: number;
  leads: number;
  conversions: number;
  sales: number;
  saleAmount: number;
}

export interface Customer extends Texts<'id' | 'externalId' | 'email' | 'country'> {
  /** Null: the service generates a name whenever the customer is read. */
  name: string | null;
  createdAt: number;
  /** The click through which the customer came; sales are attributed to it. */
  click: Click;
  purchases: number;
}

export interface Click extends Texts<'id' | 'referer' | 'refererUrl' | 'ip'> {
  at: number;
  link: Link;
  place: Place;
  agent: Agent;
  trigger: string | null;
}

/** Link and customer are references that are joined when the event is read, as in the service. */
export interface StoredEvent {
  stream: StreamName;
  at: number;
  /** Order of arrival: breaks ties between equal times. */
  order: number;
  /** `click.id` of a click, `eventId` of a lead or sale. */
  id: string;
  click: Click;
  name?: string;
  metadata?: Json;
  customer?: Customer;
  sale?: Texts<'invoiceId' | 'paymentProcessor' | 'currency'> & { amount: number; first: boolean };
  /** An inserted record, which is returned unchanged. */
  raw?: JsonObject;
}

export type NewEvent = Omit<StoredEvent, 'order'>;
