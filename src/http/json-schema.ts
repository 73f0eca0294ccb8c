import { STREAM_NAMES } from '../model/streams.ts';

/** The few words of JSON Schema that the API needs: what is asked of it, and what it answers. */
export interface JsonSchema {
  type?: string | readonly string[];
  description?: string;
  $ref?: string;
  anyOf?: readonly JsonSchema[];
  enum?: readonly (string | boolean | null)[];
  format?: string;
  minimum?: number;
  maximum?: number;
  default?: unknown;
  minLength?: number;
  maxLength?: number;
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
}

export const text: JsonSchema = { type: 'string' };
/** Of what people send: nothing they mean is longer. */
export const shortText: JsonSchema = { type: 'string', maxLength: 200 };
export const moment: JsonSchema = { type: 'string', format: 'date-time' };
export const day: JsonSchema = { type: 'string', format: 'date' };
export const count: JsonSchema = { type: 'integer', minimum: 0 };
export const figure: JsonSchema = { type: 'number', minimum: 0 };
export const share: JsonSchema = { type: 'number', minimum: 0, maximum: 1 };
export const flag: JsonSchema = { type: 'boolean' };

export const oneOf = (...words: readonly string[]): JsonSchema => ({ type: 'string', enum: words });
export const stream = oneOf(...STREAM_NAMES);
export const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
export const byName = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });
export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

/** Unknown values are null: `anyOf`, since a reference stands alone. */
export const orNull = (schema: JsonSchema): JsonSchema =>
  typeof schema.type === 'string' && !schema.enum
    ? { ...schema, type: [schema.type, 'null'] }
    : { anyOf: [schema, { type: 'null' }] };

/** Every property is there, and no other: a field that nobody described is a field that nobody meant to show. */
export const object = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** Of what people send: only some of it is needed. */
export const request = (
  properties: Readonly<Record<string, JsonSchema>>,
  ...required: readonly string[]
): JsonSchema => ({ type: 'object', properties, required, additionalProperties: false });
