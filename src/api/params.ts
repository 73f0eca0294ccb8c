import { STREAM_NAMES, type StreamName } from '../model/streams.ts';

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

type Rest = Omit<Partial<Param>, 'name' | 'doc'>;
/** A parameter that takes one text, unless the rest says otherwise. */
const one = (name: string, doc: string, rest?: Rest): Param => ({ name, type: 'string', doc, ...rest });
/** A parameter with advanced filtering, and the column that shows it. */
const some = (name: string, doc: string, column?: string, rest?: Rest): Param =>
  one(name, doc, { advanced: true, ...(column && { columns: [column] }), ...rest });
const choice = (name: string, doc: string, values: readonly string[], rest?: Rest): Param =>
  one(name, doc, { type: 'enum', values, ...rest });

const INTERVALS = ['24h', '7d', '30d', '90d', '1y', 'mtd', 'qtd', 'ytd', 'all'];
const CONTINENTS = ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'];
const BOTH = 'both when absent';
const QUERY = "search by a custom metadata value: `metadata['<key>']:'<value>'`; leads and sales only";
const INFERRED = "leave it out: it is inferred from the workspace's defaultProgramId";

export const PARAMS: readonly Param[] = [
  choice('event', 'type of event to retrieve', STREAM_NAMES, { default: 'clicks', reserved: 'the stream decides it' }),
  some('domain', 'domain of the short link', 'link_domain'),
  one('key', 'slug of the short link; only together with one `domain`', { needs: 'domain', columns: ['link_key'] }),
  some('linkId', 'link ID', 'link_id'),
  one('externalId', 'link ID in your own database, prefixed with `ext_`', {
    prefix: 'ext_',
    columns: ['link_external_id'],
  }),
  some('tenantId', 'tenant ID', 'link_tenant_id'),
  some('tagId', 'tag ID', 'link_tags'),
  some('folderId', 'folder ID; when absent, all links are included', 'link_folder_id'),
  some('partnerTagId', 'partner tag ID'),
  some('groupId', 'group ID'),
  some('partnerId', 'partner ID', 'link_partner_id'),
  one('customerId', 'customer ID', { columns: ['customer_id'] }),
  choice('interval', 'time interval, where no `start` is given', INTERVALS, {
    default: '24h',
    reserved: 'use --from and --to, or `since` in the config',
  }),
  one('start', 'start date and time', { reserved: 'use --from, or `since` in the config' }),
  one('end', 'end date and time; the current date when absent', { reserved: 'use --to' }),
  one('timezone', 'IANA time zone', { default: 'UTC', reserved: 'it is always UTC' }),
  some('country', '2-letter ISO 3166-1 country code', 'click_country', { form: COUNTRY }),
  some('city', 'city name', 'click_city'),
  some('region', 'ISO 3166-2 region code', 'click_region', { form: REGION }),
  some('continent', 'continent code', 'click_continent', { closed: true, values: CONTINENTS }),
  some('device', 'device', 'click_device'),
  some('browser', 'browser', 'click_browser'),
  some('os', 'operating system', 'click_os'),
  some('trigger', 'what caused the click; all triggers when absent', 'click_trigger', {
    values: ['qr', 'link', 'pageview'],
  }),
  some('referer', 'referer hostname', 'click_referer'),
  some('refererUrl', 'full referer URL', 'click_referer_url'),
  some('url', 'destination URL', undefined, { columns: ['click_url', 'link_url'] }),
  ...['source', 'medium', 'campaign', 'term', 'content'].map((of) => some(`utm_${of}`, `UTM ${of}`, `link_utm_${of}`)),
  one('root', `true: root domains only; false: links only; ${BOTH}`, { type: 'boolean' }),
  choice('saleType', `first-time or repeat purchases; ${BOTH}`, ['new', 'recurring'], { streams: ['sales'] }),
  one('query', QUERY, { maxLength: 10_000, form: METADATA_SEARCH, streams: ['leads', 'sales'] }),
  one('programId', 'program ID', { columns: ['link_program_id'], deprecated: INFERRED }),
  one('tagIds', 'tag IDs', { deprecated: 'use tagId', conflicts: 'tagId', columns: ['link_tags'] }),
  one('qr', `true: QR scans only; false: links only; ${BOTH}`, {
    type: 'boolean',
    deprecated: 'use trigger',
    conflicts: 'trigger',
    columns: ['click_qr'],
  }),
  // The contract counts from 1; the reader tests whether the service counts from 0.
  one('page', 'page number', { type: 'number', min: 0, default: 1, reserved: PAGING }),
  one('limit', 'items per page', { type: 'number', min: 1, max: MAX_LIMIT, default: 100, reserved: PAGING }),
  choice('sortOrder', 'sort order', ORDER, { default: 'desc', reserved: SORTING }),
  choice('sortBy', 'sort field', ['timestamp'], { default: 'timestamp', reserved: SORTING }),
  choice('order', 'sort order', ORDER, { default: 'desc', deprecated: 'use sortOrder', reserved: SORTING }),
];

const BY_NAME: ReadonlyMap<string, Param> = new Map(PARAMS.map((param) => [param.name, param]));

export const findParam = (name: string): Param | undefined => BY_NAME.get(name);
