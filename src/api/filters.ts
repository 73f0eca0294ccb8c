import { STREAM_NAMES, STREAMS, type StreamName } from '../model/streams.ts';
import { checkFiltered } from './check-filtered.ts';
import { findParam, PARAMS, type Param } from './params.ts';

interface ParamFault {
  path: (string | number)[];
  message: string;
}

/** `query` holds only valid parameters; it may be sent only if there are no faults. */
export interface CheckedParams {
  query: Record<string, string>;
  faults: ParamFault[];
  warnings: string[];
}

/** Checks the filters of a stream. All faults are reported at once, each with its place. Never throws. */
export function checkFilters(stream: StreamName, filters: unknown): CheckedParams {
  const checked = check(stream, filters, (param) =>
    param.reserved ? `${param.name} is set by the reader itself: ${param.reserved}` : undefined,
  );
  for (const name of checkFiltered(STREAMS[stream], checked.query, []).hidden) {
    checked.warnings.push(`${name}: no column shows whether the service applies it; certification assumes so`);
  }
  return checked;
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
  const text = readValue(param, value, (message, index) => {
    checked.faults.push({ path: index === undefined ? [name] : [name, index], message: `${name} ${message}` });
    return undefined;
  });
  if (text === undefined) return;
  checked.query[name] = text;
  const values = param.advanced ? text.split(',').map((each) => each.replace(/^-/, '')) : [text];
  checked.warnings.push(...values.flatMap((each) => unusual(param, each)).map((warning) => `${name}: ${warning}`));
  if (param.deprecated) checked.warnings.push(`${name} is deprecated: ${param.deprecated}`);
}

function misplaced({ name, streams, needs, conflicts }: Param, stream: StreamName, raw: Mapping): string | undefined {
  if (streams && !streams.includes(stream)) return `${name} works on ${streams.join(' and ')} only, not on ${stream}`;
  if (conflicts && Object.hasOwn(raw, conflicts)) {
    return `${name} conflicts with ${conflicts}, which means the same: keep ${conflicts}`;
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

/** The parameters that can be used as filters, in the order of the contract. */
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
  const common = { description: doc, ...(deprecated && { deprecated: true }) };
  if (type === 'boolean') return { ...common, type: 'boolean' };
  if (!advanced)
    return { ...common, ...(type === 'enum' ? { enum: values } : { type: ['string', 'number'], maxLength }) };
  const word = `-?(${values.join('|')})`;
  return {
    ...common,
    type: ['string', 'number', 'array'],
    // Values that the service may add to are suggested, not required.
    ...(values.length > 0 && { examples: values }),
    ...(closed && { pattern: `^${word}(,${word})*$`, items: { pattern: `^${word}$` } }),
  };
}

/** Callback for a fault of a value, with its index in a list. */
type Refuse = (message: string, index?: number) => undefined;

/** Converts one value, from YAML or a command line, into the text that is sent for this parameter. */
function readValue(param: Param, value: unknown, refuse: Refuse): string | undefined {
  if (Array.isArray(value))
    return param.advanced ? readList(param, value, refuse) : refuse('takes one value, not a list');
  const text = scalarText(param, value, refuse);
  if (text === undefined) return undefined;
  if (param.advanced) return readCommaText(param, text, refuse);
  const problem = checkText(param, text);
  return problem ? refuse(problem) : text;
}

/** A YAML list: each entry is one value, so a comma inside would silently become two. */
function readList(param: Param, list: readonly unknown[], refuse: Refuse): string | undefined {
  if (list.length === 0) return refuse('is an empty list: name at least one value, or leave the parameter out');
  const entries = list.flatMap((value, index) => {
    if (Array.isArray(value)) return refuse('is a list inside a list', index) ?? [];
    const text = scalarText(param, value, (message) => refuse(message, index));
    return (text?.includes(',') ? refuse(holdsComma(text), index) : text?.trim()) ?? [];
  });
  return entries.length < list.length ? undefined : join(param, entries, entries.every(isExclusion), refuse);
}

/** A text in the service's own syntax: `US`, `US,CA`, `-US`, `-US,-CA`. */
function readCommaText(param: Param, text: string, refuse: Refuse): string | undefined {
  // Codes and known words can be split safely; in free text `Washington, D.C.` is one name, and the service would look for two.
  if (!param.values && !param.form && /,\s/.test(text)) {
    return refuse(`${holdsComma(text)}. If two are meant, write a list, or no blank after the comma`);
  }
  const entries = text.split(',').map((entry) => entry.trim());
  return join(param, entries, isExclusion(entries[0] ?? ''), refuse);
}

const holdsComma = (text: string): string =>
  `${quote(text)} holds a comma, which the service reads as two values; it has no way to ask for one`;

function join(param: Param, entries: readonly string[], excluding: boolean, refuse: Refuse): string | undefined {
  if (entries.some((entry) => isExclusion(entry) !== excluding)) {
    return refuse('excludes some values and includes others: put - before every value, or before none');
  }
  const values = entries.map((entry) => (excluding ? entry.slice(1) : entry).trim());
  const problem = values
    .map((value) => (isExclusion(value) ? 'has a - too many' : checkText(param, value)))
    .find(Boolean);
  return problem ? refuse(problem) : values.map((value) => (excluding ? `-${value}` : value)).join(',');
}

const isExclusion = (entry: string): boolean => entry.startsWith('-');

/** YAML turns unquoted words into numbers, booleans and null; only values that survive this unchanged are accepted. */
function scalarText(param: Param, value: unknown, refuse: Refuse): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'bigint':
      return String(value);
    case 'number':
      if (Number.isSafeInteger(value)) return String(value);
      return refuse(`${value} cannot be sent exactly: write it in quotes, so that its characters stay as they are`);
    case 'boolean':
      if (param.type === 'boolean') return String(value);
      return refuse(`is the boolean ${value}: if the word itself is meant, write it in quotes`);
    default:
      if (value === null || value === undefined) return refuse('has no value');
      return refuse(`must be a text, a number or a boolean${param.advanced ? ', or a list of them' : ''}`);
  }
}

/** Why a text is not a valid value of this parameter, or undefined. */
function checkText(param: Param, text: string): string | undefined {
  if (text.trim() === '') return 'is empty';
  // A lone surrogate would be sent as U+FFFD: another value than the requested one.
  if (/[\p{Cc}\p{Surrogate}]/u.test(text)) return 'holds a control character or half a character';
  if (param.type === 'boolean')
    return /^(true|false)$/.test(text) ? undefined : `must be true or false, not ${quote(text)}`;
  if (param.type === 'number') return checkNumber(param, text);
  if ((param.type === 'enum' || param.closed) && !param.values?.includes(text)) {
    return `must be one of ${param.values?.join(', ')}, not ${quote(text)}`;
  }
  if (param.prefix && (!text.startsWith(param.prefix) || text === param.prefix)) {
    return `must start with ${param.prefix}, as in ${param.prefix}1234`;
  }
  if (param.maxLength && text.length > param.maxLength) {
    return `has ${text.length} characters; at most ${param.maxLength} are allowed`;
  }
  if (param.form?.strict && !param.form.fits(text) && !param.form.inTheField?.includes(text)) {
    const meant = param.form.meant?.(text);
    return `must be ${param.form.text}, not ${quote(text)}${meant ? `: did you mean ${meant}?` : ''}`;
  }
  if (param.name === 'timezone' && !isTimeZone(text)) return `${quote(text)} is not an IANA time zone`;
  return undefined;
}

function checkNumber({ min = 0, max }: Param, text: string): string | undefined {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= (max ?? number)) return undefined;
  return `must be a whole number ${max === undefined ? `from ${min}` : `from ${min} to ${max}`}, not ${quote(text)}`;
}

function isTimeZone(text: string): boolean {
  try {
    // Every request names UTC, and a formatter takes longer to make than the rest of its query.
    return text === 'UTC' || new Intl.DateTimeFormat('en', { timeZone: text }) !== undefined;
  } catch {
    return false; // Intl throws on an unknown zone.
  }
}

/** The service may know more values (a new trigger, `Unknown` as a country): unknown ones are sent, with a warning. */
function unusual({ type, values, form }: Param, text: string): string[] {
  if (type === 'string' && values && !values.includes(text)) {
    return [`${quote(text)} is not one of the known values (${values.join(', ')}); it is sent as it is`];
  }
  if (form && !form.fits(text)) return [`${quote(text)} is not ${form.text}; it is sent as it is`];
  return [];
}

const quote = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** The known name closest to a mistyped one, or undefined if none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const typed = simple(name.slice(0, 100));
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(typed, simple(candidate));
    if (!best || distance < best.distance) best = { name: candidate, distance };
  }
  return best && best.distance <= Math.max(1, Math.floor(best.name.length / 2)) ? best.name : undefined;
}

/** Case and separators do not count: `utmSource`, `utm-source` and `UTM_SOURCE` are the same. */
const simple = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
