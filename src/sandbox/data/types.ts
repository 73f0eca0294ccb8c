import type { StreamName } from '../../model/streams.ts';

/** JSON as the service writes it; integers that a double cannot hold are BigInt. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Place {
  continent: string;
  country: string;
  region: string;
  city: string;
}

export interface Agent {
  device: string;
  browser: string;
  os: string;
}

export interface Tag {
  id: string;
  name: string;
  color: string;
}

export interface Partner {
  id: string;
  programId: string;
  groupId: string;
  tagIds: readonly string[];
}

/** A link is one object that all its events share: a change shows on every event that is read later. */
export interface Link {
  id: string;
  domain: string;
  key: string;
  url: string;
  externalId: string | null;
  tenantId: string | null;
  partner: Partner | null;
  tags: readonly Tag[];
  folderId: string | null;
  utm: {
    utm_source: string | null;
    utm_medium: string | null;
    utm_campaign: string | null;
    utm_term: string | null;
    utm_content: string | null;
  };
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

export interface Customer {
  id: string;
  externalId: string;
  /** Null: the service invents a name whenever the customer is read. */
  name: string | null;
  email: string;
  country: string;
  createdAt: number;
  /** The click the customer came by; their sales are credited to it. */
  click: Click;
  purchases: number;
}

export interface Click {
  id: string;
  at: number;
  link: Link;
  place: Place;
  agent: Agent;
  trigger: string | null;
  referer: string;
  refererUrl: string;
  ip: string;
}

interface Sale {
  amount: number;
  invoiceId: string;
  paymentProcessor: string;
  currency: string;
  first: boolean;
}

/** The event's own part. Link and customer are references that are joined when the event is read, as in the service. */
export interface StoredEvent {
  stream: StreamName;
  at: number;
  /** Order of arrival: the stable order among equal instants. */
  order: number;
  /** `click.id` of a click, `eventId` of a lead or sale. */
  id: string;
  click: Click;
  name?: string;
  metadata?: Json;
  customer?: Customer;
  sale?: Sale;
  /** An inserted record, which is returned unchanged. */
  raw?: JsonObject;
}

export type NewEvent = Omit<StoredEvent, 'order'>;
