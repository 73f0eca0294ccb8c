import type { StreamName } from '../model/streams.ts';

/**
 * Every query parameter of `GET /events`, as data. Checking, documentation and the config schema are read from this
 * table and from nowhere else: a parameter that the service adds is one line here.
 */
export interface Param {
  name: string;
  type: 'string' | 'enum' | 'boolean' | 'number';
  doc: string;
  /** An enum refuses every other value. On a string they are only the values known so far: others bring a warning. */
  values?: readonly string[];
  /** The form a value has. `strict`: anything else is refused; otherwise it brings a warning. */
  form?: { pattern: RegExp; text: string; strict?: true };
  default?: string | number;
  /** Advanced filtering (AF): one value, several (any of them matches), or `-` in front to exclude. */
  advanced?: true;
  min?: number;
  max?: number;
  maxLength?: number;
  prefix?: string;
  /** Another parameter without which this one means nothing. */
  needs?: string;
  /** The streams it works on; absent: all. */
  streams?: readonly StreamName[];
  /** Still accepted; the text says what to use instead. */
  deprecated?: string;
  /** The reader sets it itself; the text says what a person uses instead. */
  reserved?: string;
}

/** The largest page the service gives out. */
export const MAX_LIMIT = 1000;

const ORDER = ['asc', 'desc'] as const;
const PAGING = 'the reader pages through everything by itself';
const SORTING = 'the reader sorts as its proof of completeness needs it';

const COUNTRY = { pattern: /^[A-Z]{2}$/, text: 'a 2-letter ISO 3166-1 country code' };
const REGION = { pattern: /^[A-Z]{2}-[A-Z0-9]{1,3}$/, text: 'an ISO 3166-2 region code such as US-CA' };
const METADATA_SEARCH = {
  pattern: /^metadata\['.+?'\]:'.+'$/s,
  text: "metadata['<key>']:'<value>'",
  strict: true,
} as const;

export const PARAMS: readonly Param[] = [
  {
    name: 'event',
    type: 'enum',
    values: ['clicks', 'leads', 'sales'],
    default: 'clicks',
    reserved: 'the stream decides it',
    doc: 'type of event to retrieve',
  },
  { name: 'domain', type: 'string', advanced: true, doc: 'domain of the short link' },
  { name: 'key', type: 'string', needs: 'domain', doc: 'slug of the short link; only together with `domain`' },
  { name: 'linkId', type: 'string', advanced: true, doc: 'link ID' },
  { name: 'externalId', type: 'string', prefix: 'ext_', doc: 'link ID in your own database, prefixed with `ext_`' },
  { name: 'tenantId', type: 'string', advanced: true, doc: 'tenant ID' },
  { name: 'tagId', type: 'string', advanced: true, doc: 'tag ID' },
  { name: 'folderId', type: 'string', advanced: true, doc: 'folder ID; when absent, all links are included' },
  { name: 'partnerTagId', type: 'string', advanced: true, doc: 'partner tag ID' },
  { name: 'groupId', type: 'string', advanced: true, doc: 'group ID' },
  { name: 'partnerId', type: 'string', advanced: true, doc: 'partner ID' },
  { name: 'customerId', type: 'string', doc: 'customer ID' },
  {
    name: 'interval',
    type: 'enum',
    values: ['24h', '7d', '30d', '90d', '1y', 'mtd', 'qtd', 'ytd', 'all'],
    default: '24h',
    reserved: 'use --from and --to, or `since` in the config',
    doc: 'time interval, where no `start` is given',
  },
  { name: 'start', type: 'string', reserved: 'use --from, or `since` in the config', doc: 'start date and time' },
  { name: 'end', type: 'string', reserved: 'use --to', doc: 'end date and time; the current date when absent' },
  { name: 'timezone', type: 'string', default: 'UTC', reserved: 'it is always UTC', doc: 'IANA time zone' },
  { name: 'country', type: 'string', advanced: true, form: COUNTRY, doc: '2-letter ISO 3166-1 country code' },
  { name: 'city', type: 'string', advanced: true, doc: 'city name' },
  { name: 'region', type: 'string', advanced: true, form: REGION, doc: 'ISO 3166-2 region code' },
  {
    name: 'continent',
    type: 'string',
    advanced: true,
    values: ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'],
    doc: 'continent code',
  },
  { name: 'device', type: 'string', advanced: true, doc: 'device' },
  { name: 'browser', type: 'string', advanced: true, doc: 'browser' },
  { name: 'os', type: 'string', advanced: true, doc: 'operating system' },
  {
    name: 'trigger',
    type: 'string',
    advanced: true,
    values: ['qr', 'link', 'pageview'],
    doc: 'what caused the click; all triggers when absent',
  },
  { name: 'referer', type: 'string', advanced: true, doc: 'referer hostname' },
  { name: 'refererUrl', type: 'string', advanced: true, doc: 'full referer URL' },
  { name: 'url', type: 'string', advanced: true, doc: 'destination URL' },
  { name: 'utm_source', type: 'string', advanced: true, doc: 'UTM source' },
  { name: 'utm_medium', type: 'string', advanced: true, doc: 'UTM medium' },
  { name: 'utm_campaign', type: 'string', advanced: true, doc: 'UTM campaign' },
  { name: 'utm_term', type: 'string', advanced: true, doc: 'UTM term' },
  { name: 'utm_content', type: 'string', advanced: true, doc: 'UTM content' },
  { name: 'root', type: 'boolean', doc: 'true: root domains only; false: links only; both when absent' },
  {
    name: 'saleType',
    type: 'enum',
    values: ['new', 'recurring'],
    doc: 'first-time or repeat purchases; both when absent',
  },
  {
    name: 'query',
    type: 'string',
    maxLength: 10_000,
    form: METADATA_SEARCH,
    streams: ['leads', 'sales'],
    doc: "search by a custom metadata value: `metadata['<key>']:'<value>'`; leads and sales only",
  },
  {
    name: 'programId',
    type: 'string',
    deprecated: "leave it out: it is inferred from the workspace's defaultProgramId",
    doc: 'program ID',
  },
  { name: 'tagIds', type: 'string', deprecated: 'use tagId', doc: 'tag IDs' },
  {
    name: 'qr',
    type: 'boolean',
    deprecated: 'use trigger',
    doc: 'true: QR scans only; false: links only; both when absent',
  },
  { name: 'page', type: 'number', min: 1, default: 1, reserved: PAGING, doc: 'page number' },
  { name: 'limit', type: 'number', min: 1, max: MAX_LIMIT, default: 100, reserved: PAGING, doc: 'items per page' },
  { name: 'sortOrder', type: 'enum', values: ORDER, default: 'desc', reserved: SORTING, doc: 'sort order' },
  { name: 'sortBy', type: 'enum', values: ['timestamp'], default: 'timestamp', reserved: SORTING, doc: 'sort field' },
  {
    name: 'order',
    type: 'enum',
    values: ORDER,
    default: 'desc',
    deprecated: 'use sortOrder',
    reserved: SORTING,
    doc: 'sort order',
  },
];

const BY_NAME: ReadonlyMap<string, Param> = new Map(PARAMS.map((param) => [param.name, param]));

export const findParam = (name: string): Param | undefined => BY_NAME.get(name);
