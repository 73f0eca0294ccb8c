/** What of JSON Schema the description uses. */
export interface JsonSchema {
  type?: string | readonly string[];
  $ref?: string;
  anyOf?: readonly JsonSchema[];
  enum?: readonly unknown[];
  const?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  items?: JsonSchema;
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
}

export interface ApiDescription {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

export interface Operation {
  operationId: string;
  parameters?: Array<{ name: string; in: 'path' | 'query'; required: boolean; schema: JsonSchema }>;
  requestBody?: object;
  responses: Record<string, { content?: { 'application/json': { schema: JsonSchema } } }>;
}

/** Where a value is not what a schema says, place by place; written against the specification, not against our own words for it. */
export function mismatches(value: unknown, schema: JsonSchema, { components }: ApiDescription, at = ''): string[] {
  const check = (inner: unknown, of: JsonSchema, place: string): string[] => {
    const { $ref, anyOf, type, ...rest } = of;
    if ($ref !== undefined) {
      const named = components.schemas[$ref.replace('#/components/schemas/', '')];
      return named ? check(inner, named, place) : [`${place}: ${$ref} is nowhere`];
    }
    if (anyOf) return anyOf.some((one) => check(inner, one, place).length === 0) ? [] : [`${place}: ${text(inner)}`];
    const types = [type ?? []].flat();
    if (types.length > 0 && !types.some((one) => isA(inner, String(one))))
      return [`${place}: ${text(inner)} is no ${types}`];
    if (rest.enum && inner !== null && !rest.enum.includes(inner))
      return [`${place}: ${text(inner)} is not among ${rest.enum}`];
    if (typeof inner === 'number') return inRange(inner, rest) ? [] : [`${place}: ${inner} is out of range`];
    if (typeof inner === 'string')
      return isFormat(inner, rest.format) ? [] : [`${place}: ${inner} is no ${rest.format}`];
    if (Array.isArray(inner))
      return inner.flatMap((each, i) => (rest.items ? check(each, rest.items, `${place}[${i}]`) : []));
    if (typeof inner !== 'object' || inner === null) return [];
    const { properties = {}, required = [], additionalProperties = true } = rest;
    const missing = required.filter((name) => !(name in inner)).map((name) => `${place}.${name} is missing`);
    return [
      ...missing,
      ...Object.entries(inner).flatMap(([name, each]) => {
        const own = properties[name];
        if (own) return check(each, own, `${place}.${name}`);
        if (additionalProperties === false) return [`${place}.${name} is not described`];
        return typeof additionalProperties === 'object' ? check(each, additionalProperties, `${place}.${name}`) : [];
      }),
    ];
  };
  return check(value, schema, at);
}

const text = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? 'undefined';

function isA(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

const inRange = (
  value: number,
  { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }: JsonSchema,
): boolean => value >= minimum && value <= maximum;

function isFormat(value: string, format: string | undefined): boolean {
  if (format === 'date-time')
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) && !Number.isNaN(Date.parse(value));
  return format !== 'date' || (/^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)));
}
