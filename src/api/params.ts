import type { StreamName } from '../model/streams.ts';

/**
 * Every query parameter of `GET /events`, as data. Checking, docs/configuration.md, the editor's JSON schema and the check of filtered rows
 * are all derived from this table: a new parameter of the service is one line here.
 */
export interface Param {
  name: string;
  type: 'string' | 'enum' | 'boolean' | 'number';
  doc: string;
  /** An enum refuses every other value. For a string these are the known values, and others give a warning unless they are `closed`. */
  values?: readonly string[];
  closed?: true;
  /** The form of a value. `strict`: anything else is refused, except values known `inTheField`; otherwise it gives a warning. */
  form?: {
    fits(text: string): boolean;
    text: string;
    strict?: true;
    inTheField?: readonly string[];
    meant?(text: string): string | undefined;
  };
  default?: string | number;
  /** Advanced filtering (AF): one value, several (any of them matches), or `-` in front to exclude. */
  advanced?: true;
  min?: number;
  max?: number;
  maxLength?: number;
  prefix?: string;
  /** Another parameter that this one requires, with exactly one included value. */
  needs?: string;
  /** Another parameter with the same meaning: only one of the two may be given. */
  conflicts?: string;
  /** Columns that show whether a row passed the filter; one of them is enough. Absent: rows do not show it. */
  columns?: readonly string[];
  /** The streams it applies to; absent: all. */
  streams?: readonly StreamName[];
  /** Still accepted; the text says what to use instead. */
  deprecated?: string;
  /** Set by the reader itself; the text says what to use instead. */
  reserved?: string;
}

/** ISO 3166-1, the officially assigned codes. */
const CODES = (
  'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG ' +
  'CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL ' +
  'GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA ' +
  'LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP ' +
  'NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV ' +
  'SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW'
).split(' ');

const ASSIGNED: ReadonlySet<string> = new Set(CODES);
/** Codes in everyday use that are not ISO codes. */
const EVERYDAY: Readonly<Record<string, string>> = { UK: 'GB', EL: 'GR', ENG: 'GB', USA: 'US', UAE: 'AE' };

const isCountry = (text: string): boolean => ASSIGNED.has(text);

/** The ISO code for another spelling, an everyday code, or the country's English name. */
function countryMeant(text: string): string | undefined {
  const upper = text.toUpperCase();
  if (isCountry(upper)) return upper;
  if (Object.hasOwn(EVERYDAY, upper)) return EVERYDAY[upper];
  const names = new Intl.DisplayNames('en', { type: 'region' });
  return CODES.find((code) => names.of(code)?.toUpperCase() === upper);
}

/** The largest page the service gives out. */
export const MAX_LIMIT = 1000;

const ORDER = ['asc', 'desc'] as const;
const PAGING = 'the reader pages through everything by itself';
const SORTING = 'the reader sorts as its proof of completeness needs it';

const COUNTRY = {
  fits: isCountry,
  text: 'a 2-letter ISO 3166-1 country code',
  strict: true,
  inTheField: ['Unknown', 'XK', 'XX', 'T1'],
  meant: countryMeant,
} as const;
const REGION = {
  fits: (text: string) => /^[A-Z]{2}-[A-Z0-9]{1,3}$/.test(text),
  text: 'an ISO 3166-2 region code such as US-CA',
};
const METADATA_SEARCH = {
  fits: (text: string) => /^metadata\['.+?'\]:'.+'$/s.test(text),
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
  { name: 'domain', type: 'string', advanced: true, columns: ['link_domain'], doc: 'domain of the short link' },
  {
    name: 'key',
    type: 'string',
    needs: 'domain',
    columns: ['link_key'],
    doc: 'slug of the short link; only together with one `domain`',
  },
  { name: 'linkId', type: 'string', advanced: true, columns: ['link_id'], doc: 'link ID' },
  {
    name: 'externalId',
    type: 'string',
    prefix: 'ext_',
    columns: ['link_external_id'],
    doc: 'link ID in your own database, prefixed with `ext_`',
  },
  { name: 'tenantId', type: 'string', advanced: true, columns: ['link_tenant_id'], doc: 'tenant ID' },
  { name: 'tagId', type: 'string', advanced: true, columns: ['link_tags'], doc: 'tag ID' },
  {
    name: 'folderId',
    type: 'string',
    advanced: true,
    columns: ['link_folder_id'],
    doc: 'folder ID; when absent, all links are included',
  },
  { name: 'partnerTagId', type: 'string', advanced: true, doc: 'partner tag ID' },
  { name: 'groupId', type: 'string', advanced: true, doc: 'group ID' },
  { name: 'partnerId', type: 'string', advanced: true, columns: ['link_partner_id'], doc: 'partner ID' },
  { name: 'customerId', type: 'string', columns: ['customer_id'], doc: 'customer ID' },
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
  {
    name: 'country',
    type: 'string',
    advanced: true,
    form: COUNTRY,
    columns: ['click_country'],
    doc: '2-letter ISO 3166-1 country code',
  },
  { name: 'city', type: 'string', advanced: true, columns: ['click_city'], doc: 'city name' },
  {
    name: 'region',
    type: 'string',
    advanced: true,
    form: REGION,
    columns: ['click_region'],
    doc: 'ISO 3166-2 region code',
  },
  {
    name: 'continent',
    type: 'string',
    closed: true,
    advanced: true,
    columns: ['click_continent'],
    values: ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'],
    doc: 'continent code',
  },
  { name: 'device', type: 'string', advanced: true, columns: ['click_device'], doc: 'device' },
  { name: 'browser', type: 'string', advanced: true, columns: ['click_browser'], doc: 'browser' },
  { name: 'os', type: 'string', advanced: true, columns: ['click_os'], doc: 'operating system' },
  {
    name: 'trigger',
    type: 'string',
    advanced: true,
    columns: ['click_trigger'],
    values: ['qr', 'link', 'pageview'],
    doc: 'what caused the click; all triggers when absent',
  },
  { name: 'referer', type: 'string', advanced: true, columns: ['click_referer'], doc: 'referer hostname' },
  { name: 'refererUrl', type: 'string', advanced: true, columns: ['click_referer_url'], doc: 'full referer URL' },
  { name: 'url', type: 'string', advanced: true, columns: ['click_url', 'link_url'], doc: 'destination URL' },
  { name: 'utm_source', type: 'string', advanced: true, columns: ['link_utm_source'], doc: 'UTM source' },
  { name: 'utm_medium', type: 'string', advanced: true, columns: ['link_utm_medium'], doc: 'UTM medium' },
  { name: 'utm_campaign', type: 'string', advanced: true, columns: ['link_utm_campaign'], doc: 'UTM campaign' },
  { name: 'utm_term', type: 'string', advanced: true, columns: ['link_utm_term'], doc: 'UTM term' },
  { name: 'utm_content', type: 'string', advanced: true, columns: ['link_utm_content'], doc: 'UTM content' },
  { name: 'root', type: 'boolean', doc: 'true: root domains only; false: links only; both when absent' },
  {
    name: 'saleType',
    type: 'enum',
    values: ['new', 'recurring'],
    streams: ['sales'],
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
    columns: ['link_program_id'],
    deprecated: "leave it out: it is inferred from the workspace's defaultProgramId",
    doc: 'program ID',
  },
  {
    name: 'tagIds',
    type: 'string',
    deprecated: 'use tagId',
    conflicts: 'tagId',
    columns: ['link_tags'],
    doc: 'tag IDs',
  },
  {
    name: 'qr',
    type: 'boolean',
    deprecated: 'use trigger',
    conflicts: 'trigger',
    columns: ['click_qr'],
    doc: 'true: QR scans only; false: links only; both when absent',
  },
  // By the contract from 1; where the first page is numbered 0, the reader finds that out by asking for it.
  { name: 'page', type: 'number', min: 0, default: 1, reserved: PAGING, doc: 'page number' },
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
