import { type Column, type Field, type Kind, toColumns } from './columns.ts';

/** The three streams as data, field by field from the service's contract. A new field is one line here. */
export const STREAM_NAMES = ['clicks', 'leads', 'sales'] as const;
export type StreamName = (typeof STREAM_NAMES)[number];
/** Anything with a schedule, runs and a cursor of its own: a stream of events, or the listing of all links, which is a snapshot. */
export type SyncName = StreamName | 'links';

export interface Stream {
  name: StreamName;
  event: 'click' | 'lead' | 'sale';
  doc: string;
  columns: readonly Column[];
}

const EVENT: readonly Field[] = [
  { path: 'event', kind: 'text', required: true, doc: 'Kind of event: click, lead or sale.' },
  { path: 'timestamp', kind: 'timestamp', required: true, doc: 'When the event happened.' },
  {
    path: 'eventId',
    kind: 'text',
    required: true,
    doc: "Identity of the event within its source: the click's id; the eventId of a lead or sale; else a hash of the fields that never change.",
  },
];

const CLICK: readonly Field[] = [
  { path: 'click.id', kind: 'text', alias: 'click_id', doc: 'Click identifier.' },
  {
    path: 'click.timestamp',
    kind: 'timestamp',
    doc: 'When the click happened. On leads and sales some services put the time of the lead or sale here.',
  },
  { path: 'click.url', kind: 'text', alias: 'url', doc: 'Destination URL of the click.' },
  { path: 'click.country', kind: 'text', alias: 'country', doc: 'Country, two-letter ISO 3166-1 code.' },
  { path: 'click.city', kind: 'text', alias: 'city', doc: 'City.' },
  { path: 'click.region', kind: 'text', doc: 'Region, ISO 3166-2 code.' },
  { path: 'click.continent', kind: 'text', alias: 'continent', doc: 'Continent: AF, AN, AS, EU, NA, OC or SA.' },
  { path: 'click.device', kind: 'text', alias: 'device', doc: 'Device.' },
  { path: 'click.browser', kind: 'text', alias: 'browser', doc: 'Browser.' },
  { path: 'click.os', kind: 'text', alias: 'os', doc: 'Operating system.' },
  { path: 'click.trigger', kind: 'text', doc: 'What caused the click: qr, link or pageview; others have been seen.' },
  { path: 'click.referer', kind: 'text', doc: 'Referer hostname.' },
  { path: 'click.refererUrl', kind: 'text', doc: 'Full referer URL.' },
  { path: 'click.qr', kind: 'boolean', alias: { path: 'qr', kind: 'integer' }, doc: 'Whether a QR code was scanned.' },
  { path: 'click.ip', kind: 'text', alias: 'ip', personal: 'ip', doc: 'IP address of the visitor. Personal data.' },
];

/** All fields of a link but its id are joined at read time: a rename is not a change of the event. */
const LINK: readonly Field[] = [
  { path: 'link.id', kind: 'text', alias: 'link_id', doc: 'Unique id of the short link.' },
  ...joined([
    { path: 'link.domain', kind: 'text', alias: 'domain', doc: 'Domain of the short link.' },
    { path: 'link.key', kind: 'text', alias: 'key', doc: 'Slug of the short link.' },
    { path: 'link.url', kind: 'text', doc: 'Destination URL of the link.' },
    { path: 'link.trackConversion', kind: 'boolean', doc: 'Whether conversions are tracked.' },
    { path: 'link.externalId', kind: 'text', doc: "Id of the link in the client's own database." },
    { path: 'link.tenantId', kind: 'text', doc: "Tenant that created the link in the client's system." },
    { path: 'link.programId', kind: 'text', doc: 'Program the link belongs to.' },
    { path: 'link.partnerId', kind: 'text', doc: 'Partner the link belongs to.' },
    { path: 'link.archived', kind: 'boolean', doc: 'Whether the link is archived.' },
    { path: 'link.expiresAt', kind: 'timestamp', doc: 'When the link expires.' },
    { path: 'link.expiredUrl', kind: 'text', doc: 'Where an expired link leads.' },
    { path: 'link.disabledAt', kind: 'timestamp', doc: 'When the link was disabled.' },
    {
      path: 'link.password',
      kind: 'text',
      personal: 'linkPassword',
      doc: 'Password of the link, in plain text. A secret.',
    },
    { path: 'link.proxy', kind: 'boolean', doc: 'Whether title, description, image and video make a custom preview.' },
    { path: 'link.title', kind: 'text', doc: 'Preview title.' },
    { path: 'link.description', kind: 'text', doc: 'Preview description.' },
    { path: 'link.image', kind: 'text', doc: 'Preview image.' },
    { path: 'link.video', kind: 'text', doc: 'Preview video.' },
    { path: 'link.rewrite', kind: 'boolean', doc: 'Whether the link rewrites instead of redirecting.' },
    { path: 'link.doIndex', kind: 'boolean', doc: 'Whether search engines may index the link.' },
    { path: 'link.ios', kind: 'text', doc: 'Destination URL on iOS.' },
    { path: 'link.android', kind: 'text', doc: 'Destination URL on Android.' },
    { path: 'link.geo', kind: 'json', doc: 'Map from country code to destination URL.' },
    { path: 'link.publicStats', kind: 'boolean', doc: 'Whether the statistics of the link are public.' },
    {
      path: 'link.tags',
      kind: 'json',
      alias: { path: 'link.tagId', kind: 'text', toAlias: tagIdOf, toCanonical: tagsOfId },
      doc: 'Tags of the link: a list of {id, name}, and color, which is not in the contract.',
    },
    { path: 'link.folderId', kind: 'text', doc: 'Folder of the link.' },
    { path: 'link.webhookIds', kind: 'json', doc: 'Webhooks of the link: a list of ids.' },
    { path: 'link.comments', kind: 'text', doc: 'Comments on the link.' },
    { path: 'link.shortLink', kind: 'text', doc: 'Full short URL, with https.' },
    { path: 'link.qrCode', kind: 'text', doc: "URL of the short link's QR code." },
    { path: 'link.utm_source', kind: 'text', doc: 'UTM source.' },
    { path: 'link.utm_medium', kind: 'text', doc: 'UTM medium.' },
    { path: 'link.utm_campaign', kind: 'text', doc: 'UTM campaign.' },
    { path: 'link.utm_term', kind: 'text', doc: 'UTM term.' },
    { path: 'link.utm_content', kind: 'text', doc: 'UTM content.' },
    { path: 'link.testVariants', kind: 'json', doc: 'A/B test: a list of {url, percentage}.' },
    { path: 'link.testStartedAt', kind: 'timestamp', doc: 'When the A/B test started.' },
    { path: 'link.testCompletedAt', kind: 'timestamp', doc: 'When the A/B test ended.' },
    { path: 'link.userId', kind: 'text', doc: 'User who owns the link.' },
    { path: 'link.workspaceId', kind: 'text', alias: 'link.projectId', doc: 'Workspace of the link.' },
    { path: 'link.clicks', kind: 'integer', doc: 'Clicks of the link so far, at the time of reading.' },
    { path: 'link.leads', kind: 'integer', doc: 'Leads of the link so far, at the time of reading.' },
    { path: 'link.conversions', kind: 'integer', doc: 'Leads that became paying customers, at the time of reading.' },
    { path: 'link.sales', kind: 'integer', doc: 'Sales of the link so far, recurring ones included.' },
    { path: 'link.saleAmount', kind: 'integer', doc: 'Value of all sales of the link so far, in cents.' },
    { path: 'link.lastClicked', kind: 'timestamp', doc: 'Last click of the link, at the time of reading.' },
    { path: 'link.createdAt', kind: 'timestamp', doc: 'When the link was created.' },
    { path: 'link.updatedAt', kind: 'timestamp', doc: 'When the link was last changed.' },
  ]),
];

const CONVERSION: readonly Field[] = [
  { path: 'eventName', kind: 'text', doc: 'Name of the event, as the client gave it.' },
  { path: 'metadata', kind: 'json', doc: 'Metadata of the event, as the client gave it.' },
];

const CUSTOMER: readonly Field[] = observed([
  { path: 'customer.id', kind: 'text', doc: 'Customer identifier.' },
  ...joined([
    { path: 'customer.externalId', kind: 'text', doc: "Id of the customer in the client's own database." },
    {
      path: 'customer.name',
      kind: 'text',
      personal: 'customer',
      doc: 'Name; some services make one up. Personal data.',
    },
    { path: 'customer.email', kind: 'text', personal: 'customer', doc: 'E-mail address. Personal data.' },
    { path: 'customer.avatar', kind: 'text', personal: 'customer', doc: 'Picture URL. Personal data.' },
    { path: 'customer.country', kind: 'text', doc: 'Country of the customer.' },
    { path: 'customer.createdAt', kind: 'timestamp', doc: 'When the customer was created.' },
  ]),
]);

const SALE: readonly Field[] = observed([
  {
    path: 'sale.amount',
    kind: 'integer',
    alias: 'saleAmount',
    doc: 'Amount of the sale, in minor units of sale_currency: cents, or whole yen.',
  },
  { path: 'sale.invoiceId', kind: 'text', alias: 'invoice_id', doc: 'Invoice of the sale.' },
  { path: 'sale.paymentProcessor', kind: 'text', alias: 'payment_processor', doc: 'Payment processor.' },
  { path: 'sale.currency', kind: 'text', doc: 'Currency, ISO 4217.' },
]);

const LEAD: readonly Field[] = [...EVENT, ...CONVERSION, ...CLICK, ...LINK, ...CUSTOMER];

export const STREAMS: Readonly<Record<StreamName, Stream>> = {
  clicks: stream('clicks', 'click', 'One row per click on a short link.', [...EVENT, ...CLICK, ...LINK]),
  leads: stream('leads', 'lead', 'One row per lead: a sign-up or another event that a customer took part in.', LEAD),
  sales: stream('sales', 'sale', 'One row per sale, first-time and recurring.', [...LEAD, ...SALE]),
};

export interface Bookkeeping {
  name: string;
  kind: Kind;
  nullable: boolean;
  doc: string;
}

/** A nullable column is null if its value is unknown. */
const kept = (name: string, kind: Kind, doc: string, nullable = false): Bookkeeping => ({ name, kind, nullable, doc });

/** The source of the row: the first half of every key. */
export const SOURCE = kept('_source', 'text', 'Source of the row, as named in the config.');

export const BOOKKEEPING: readonly Bookkeeping[] = [
  SOURCE,
  kept('_extra', 'json', 'What the service sent and no column holds, at its own path.', true),
  kept('_first_synced_at', 'timestamp', 'When the row was first written.'),
  kept('_synced_at', 'timestamp', 'When the row was last written: new, or changed by the service.'),
  kept('_run_id', 'text', 'The run that last wrote the row: see tributary.runs.'),
  kept(
    '_missing_since',
    'timestamp',
    'When the service was first seen not to show the event any more; null while it does. Rows are never deleted.',
    true,
  ),
];

function stream(name: StreamName, event: Stream['event'], doc: string, fields: readonly Field[]): Stream {
  return { name, event, doc, columns: toColumns(fields) };
}

function joined(fields: readonly Field[]): Field[] {
  return fields.map((field) => ({ ...field, volatile: true }));
}

/** Fields that are not in the contract but that deployed services send. Anyone who builds on one should know. */
function observed(fields: readonly Field[]): Field[] {
  return fields.map((field) => ({ ...field, doc: `${field.doc} Not in the contract.` }));
}

/** The deprecated field may hold any of the tags; by default it is the first. */
function tagIdOf(tags: unknown, given: unknown): unknown {
  const ids = (Array.isArray(tags) ? tags : []).map((tag: unknown) =>
    typeof tag === 'object' && tag !== null && 'id' in tag ? tag.id : undefined,
  );
  return ids.includes(given) ? given : ids[0];
}

function tagsOfId(id: unknown): unknown {
  return id === '' || typeof id === 'object' ? undefined : [{ id }];
}

/** Entities that events refer to and the service joins to them: one row each, as last seen. */
export interface Entity {
  name: 'links' | 'customers';
  doc: string;
  key: string;
  columns: readonly Column[];
  /** A reading counts only with a value in one of these columns: the placeholder of a deleted entity must not overwrite the real one. */
  knowledge: readonly string[];
}

/** Fields that the placeholder of a deleted customer lacks. */
export const CUSTOMER_KNOWLEDGE: readonly string[] = ['customer_email', 'customer_avatar', 'customer_country'];

export const LINKS: Entity = entity(
  'links',
  'link_',
  'One row per short link: all of them where links are listed, else those that had an event, as last read.',
  ['link_url', 'link_short_link'],
);

/** The columns of a link that change with its events: the newest reading counts. All other columns come from the newest `updatedAt`. */
export const LINK_COUNTERS: ReadonlySet<string> = new Set([
  ...['link_clicks', 'link_leads', 'link_conversions', 'link_sales', 'link_sale_amount', 'link_last_clicked'],
]);

export const entityBookkeeping = ({ name }: Pick<Entity, 'name'>): readonly Bookkeeping[] => [
  kept('_observed_at', 'timestamp', 'When it was last seen to have changed.'),
  ...(name === 'links' ? LISTED : []),
];

const LISTED: readonly Bookkeeping[] = [
  kept('_listed_at', 'timestamp', 'The last listing of all links that showed it; null: known from events alone.', true),
  kept(
    '_missing_since',
    'timestamp',
    'The first complete listing that did not show it any more; null while it is shown, or where links are not listed.',
    true,
  ),
];

export const ENTITIES: readonly Entity[] = [
  LINKS,
  entity(
    'customers',
    'customer_',
    'One row per customer that had a lead or a sale, as last seen with one.',
    CUSTOMER_KNOWLEDGE,
  ),
];

export const entitiesOf = (stream: Stream): Entity[] =>
  ENTITIES.filter(({ key }) => stream.columns.some(({ name }) => name === key));

function entity(name: Entity['name'], prefix: string, doc: string, knowledge: readonly string[]): Entity {
  const all = new Map(STREAM_NAMES.flatMap((stream) => STREAMS[stream].columns.map((column) => [column.name, column])));
  return {
    name,
    doc,
    key: `${prefix}id`,
    columns: [...all.values()].filter((column) => column.name.startsWith(prefix)),
    knowledge,
  };
}
