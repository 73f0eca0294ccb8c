import type { StreamName } from '../model/streams.ts';
import { STREAM_NAMES } from '../model/streams.ts';
import { nearest } from './nearest.ts';
import { readValue } from './param-value.ts';
import { findParam, PARAMS, type Param } from './params.ts';

export interface ParamFault {
  path: (string | number)[];
  message: string;
}

/** `query` holds only what is sound; it may be sent only when there are no faults. */
export interface CheckedParams {
  query: Record<string, string>;
  faults: ParamFault[];
  warnings: string[];
}

/** Checks what a person may filter a stream by. Every fault is found at once, each with its place. Never throws. */
export function checkFilters(stream: StreamName, filters: unknown): CheckedParams {
  return check(stream, filters, (param) =>
    param.reserved ? `${param.name} is set by the reader itself: ${param.reserved}` : undefined,
  );
}

/** Checks a complete request, all parameters of the contract, before anything is sent. Never throws. */
export function checkParams(raw: unknown): CheckedParams {
  const event = isMapping(raw) ? raw.event : undefined;
  return check(STREAM_NAMES.find((name) => name === event) ?? 'clicks', raw, () => undefined);
}

function check(stream: StreamName, raw: unknown, refused: (param: Param) => string | undefined): CheckedParams {
  const checked: CheckedParams = { query: {}, faults: [], warnings: [] };
  if (raw === undefined) return checked;
  if (!isMapping(raw)) {
    checked.faults.push({ path: [], message: 'must be a mapping from parameter names to values' });
    return checked;
  }
  for (const [name, value] of Object.entries(raw)) {
    const param = findParam(name);
    const problem = param ? (refused(param) ?? misplaced(param, stream, raw)) : unknownName(name);
    if (problem || !param) checked.faults.push({ path: [name], message: problem ?? '' });
    else take(checked, param, value);
  }
  return checked;
}

function take(checked: CheckedParams, param: Param, value: unknown): void {
  const { name } = param;
  const { text, faults, warnings } = readValue(param, value);
  for (const { index, message } of faults) {
    checked.faults.push({ path: index === undefined ? [name] : [name, index], message: `${name} ${message}` });
  }
  if (text === undefined) return;
  checked.query[name] = text;
  checked.warnings.push(...warnings.map((warning) => `${name}: ${warning}`));
  if (param.deprecated) checked.warnings.push(`${name} is deprecated: ${param.deprecated}`);
}

function misplaced({ name, streams, needs, conflicts }: Param, stream: StreamName, raw: Mapping): string | undefined {
  if (streams && !streams.includes(stream)) return `${name} works on ${streams.join(' and ')} only, not on ${stream}`;
  if (conflicts && Object.hasOwn(raw, conflicts)) {
    return `${name} stands beside ${conflicts}, which says the same: keep ${conflicts}`;
  }
  if (!needs) return undefined;
  if (!Object.hasOwn(raw, needs)) return `${name} must be used together with ${needs}`;
  const values = [raw[needs]].flat().flatMap((value) => String(value).split(','));
  const isOne = values.length === 1 && !values[0]?.trim().startsWith('-');
  return isOne ? undefined : `${name} needs exactly one ${needs}, and not an excluded one`;
}

function unknownName(name: string): string {
  const near = nearest(
    name,
    PARAMS.map((param) => param.name),
  );
  return `the service has no parameter ${JSON.stringify(name.slice(0, 60))}${near ? `: did you mean ${near}?` : ''}`;
}

type Mapping = Readonly<Record<string, unknown>>;

function isMapping(value: unknown): value is Mapping {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What may be filtered by, in the order of the contract. */
export const FILTERS: readonly Param[] = PARAMS.filter(({ reserved }) => !reserved);

/** The filters of a stream as a JSON schema, for editors. */
export function filterSchema(stream: StreamName): object {
  const ofStream = FILTERS.filter(({ streams }) => !streams || streams.includes(stream));
  return {
    additionalProperties: false,
    properties: Object.fromEntries(ofStream.map((param) => [param.name, valueSchema(param)])),
  };
}

function valueSchema({ type, values = [], closed, advanced, maxLength, doc, deprecated }: Param): object {
  const told = { description: doc, ...(deprecated && { deprecated: true }) };
  if (type === 'boolean') return { ...told, type: 'boolean' };
  if (!advanced)
    return { ...told, ...(type === 'enum' ? { enum: values } : { type: ['string', 'number'], maxLength }) };
  const word = `-?(${values.join('|')})`;
  return {
    ...told,
    type: ['string', 'number', 'array'],
    // Words that the service may add to are offered, not demanded.
    ...(values.length > 0 && { examples: values }),
    ...(closed && { pattern: `^${word}(,${word})*$`, items: { pattern: `^${word}$` } }),
  };
}
