import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import { contractTable } from './contract.ts';

/** One row of the contract's field tables, or an observed field. */
export interface ContractField {
  path: string;
  type: string;
  /** The path that replaces it. */
  use: string | undefined;
  streams: readonly StreamName[];
}

const CONVERSIONS: readonly StreamName[] = ['leads', 'sales'];

function table(heading: string, parent: string, streams: readonly StreamName[]): ContractField[] {
  return contractTable(heading).map(({ Field = '', Type = '', Notes = '' }) => {
    const use = /deprecated, use `([^`]+)`/.exec(Notes)?.[1];
    return {
      path: `${parent}${Field}`,
      type: Type,
      use: use && (use.includes('.') ? use : `${parent}${use}`),
      streams,
    };
  });
}

export const CLICK_EVENT = table('Click event (`event` = `click`)', '', STREAM_NAMES);
export const LEAD_EVENT = table('Lead event (`event` = `lead`)', '', CONVERSIONS);
export const CLICK_OBJECT = table('Click object', 'click.', STREAM_NAMES);
export const LINK_OBJECT = table('Link object', 'link.', STREAM_NAMES);

/** Fields that deployed services send but the contract lacks. */
const seen = (streams: readonly StreamName[], fields: Record<string, string>): ContractField[] =>
  Object.entries(fields).map(([path, type]) => ({ path, type, use: undefined, streams }));

export const OBSERVED: readonly ContractField[] = [
  ...seen(CONVERSIONS, {
    'customer.id': 'string',
    'customer.externalId': 'string',
    'customer.name': 'string',
    'customer.email': 'string',
    'customer.avatar': 'string',
    'customer.country': 'string',
    'customer.createdAt': 'string',
  }),
  ...seen(['sales'], {
    'sale.amount': 'number',
    'sale.invoiceId': 'string',
    'sale.paymentProcessor': 'string',
    'sale.currency': 'string',
  }),
  { path: 'saleAmount', type: 'number', use: 'sale.amount', streams: ['sales'] },
  { path: 'invoice_id', type: 'string', use: 'sale.invoiceId', streams: ['sales'] },
  { path: 'payment_processor', type: 'string', use: 'sale.paymentProcessor', streams: ['sales'] },
];

/** Every scalar field; `click` and `link` are objects with tables of their own. */
export const FIELDS: readonly ContractField[] = [
  ...[...CLICK_EVENT, ...LEAD_EVENT].filter(({ path }) => path !== 'click' && path !== 'link'),
  ...CLICK_OBJECT,
  ...LINK_OBJECT,
  ...OBSERVED,
];

/** `click.refererUrl` → `click_referer_url`. Repeated here, so that the model is not checked against itself. */
export const snake = (path: string): string =>
  path.replace('.', '_').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const TIMES = /(^|\.)(timestamp|lastClicked)$|At$/;

/** A unique value as the service would send it, and what the column must hold. */
export function sample({ path, type }: ContractField, variant = 1): { sent: unknown; held: unknown } {
  if (TIMES.test(path)) {
    const iso = `2026-0${variant}-02T03:04:05.006Z`;
    return { sent: iso, held: Date.parse(iso) };
  }
  if (path === 'qr') return { sent: variant % 2, held: variant % 2 };
  if (path === 'link.tags') return same([{ id: `link.tagId ${variant}`, name: 'launch', color: 'green' }]);
  if (path === 'link.geo') return same({ DE: `https://de.test/${variant}` });
  if (path === 'link.webhookIds') return same([`wh_${variant}`]);
  if (path === 'link.testVariants') return same([{ url: 'https://a.test', percentage: 40 + variant }]);
  if (path === 'metadata') return same({ plan: { seats: variant } });
  if (type.startsWith('boolean')) return same(variant % 2 === 1);
  if (type.startsWith('number')) return same(1000 + variant);
  if (type.startsWith('string')) return same(`${path} ${variant}`);
  throw new Error(`no sample for ${path} of type ${type}`);
}

const same = (value: unknown): { sent: unknown; held: unknown } => ({ sent: value, held: value });
