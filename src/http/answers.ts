import * as z from 'zod';
import { StreamBusy } from '../cursor/leases.ts';
import { Cancelled, ConfigError, Fault, type FaultDetails, RetryLater, StopStream } from '../model/errors.ts';
import { STREAM_NAMES } from '../model/streams.ts';

/**
 * Building blocks for the zod schemas of requests and responses: types, checks and the OpenAPI document are all derived from one
 * schema. Times are ISO 8601 in UTC; unknown values are null, never zero.
 */
export { z };

export type JsonSchema = z.core.JSONSchema.BaseSchema;

const names = z.registry<{ id: string }>();

/** Every property is required and no other is allowed: the server must not send a field that is not described. */
const object = z.strictObject;

/** A schema, or the fields of one, as a named component of the OpenAPI document. */
export function named<T extends z.ZodType>(id: string, shape: T): T;
export function named<F extends z.ZodRawShape>(id: string, fields: F): z.ZodObject<F, z.core.$strict>;
export function named(id: string, given: z.ZodType | z.ZodRawShape): z.ZodType {
  const shape = given instanceof z.ZodType ? given : object(given);
  names.add(shape, { id });
  return shape;
}

export const listOf = <F extends z.ZodRawShape>(fields: F) => z.array(object(fields));

/** Postgres cannot store NUL in text, so it is refused before any query sees it. */
const WITHOUT_NUL = '^[^\\u0000]*$';
const storable = z.string().regex(new RegExp(WITHOUT_NUL), 'must not contain a NUL character');
export const shortText = storable.max(200);
export const longText = storable.min(1).max(1000);
export const moment = z.string().meta({ format: 'date-time' });
export const day = z.string().meta({ format: 'date' });
export const count = z.int().min(0);
export const figure = z.number().min(0);
export const share = z.number().min(0).max(1);
export const stream = z.enum(STREAM_NAMES);
/** Has runs and a schedule: a stream of events, or the listing of all links. */
export const anyStream = z.enum([...STREAM_NAMES, 'links']);
/** Fields that identify a stream, and a range. */
export const of = { source: z.string(), stream };
export const range = { from: moment, to: moment.describe('exclusive') };
export const choice = {
  source: shortText.optional().describe('default: all sources'),
  streams: z.array(stream).max(3).optional().describe('default: all streams'),
};
export const byName = <T extends z.ZodType>(values: T) => z.record(z.string(), values);
export const tally = byName(count);

/** Existing days from 1970 on. 29 February passes in every year; `chooseDate` refuses it if it does not exist. */
const DAY =
  '(?:19[7-9]\\d|2\\d{3})-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|[12]\\d))';
const CLOCK = '(?:[01]\\d|2[0-3])(?::[0-5]\\d(?::[0-5]\\d(?:\\.\\d{1,9})?)?)(?:Z|[+-](?:0\\d|1[0-3]):[0-5]\\d)?';
const AGO = '\\d{1,4}(?:\\.\\d{1,3})?(?:[smhd])|\\d{1,3}w';

export const date = z
  .string()
  .max(40)
  .regex(new RegExp(`^(?:now|${AGO}|${DAY}(?:T${CLOCK})?)$`), {
    error: 'is not a date: write 2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now; dates are UTC',
  })
  .describe('2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now, in UTC');

export const limit = (usual: number) => z.int().min(1).max(500).default(usual);

export function componentSchemas(): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(names, { io: 'input', uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $id: _, $schema: __, ...schema }]) => [id, schema as JsonSchema]),
  );
}

/** A reference if the schema has a name, the schema itself otherwise. */
export function schemaOf(shape: z.ZodType): JsonSchema {
  const id = names.get(shape)?.id;
  if (id !== undefined) return { $ref: `#/components/schemas/${id}` };
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io: 'input' });
  return schema as JsonSchema;
}

/** The notes that the commands print. */
export const warnings = z.array(z.string()).describe('warnings about the filters of these streams');

/** A request that cannot be served; the status says why. */
export class HttpError extends Fault {
  readonly status: number;
  /** Seconds to wait, if a retry can help. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, details: FaultDetails & { retryAfter?: number } = {}) {
    super(message, details);
    this.status = status;
    this.retryAfter = details.retryAfter;
  }
}

/**
 * The body of every error. 400: the request does not match the schema. 401: not signed in. 403: the role does not allow it, or the CSRF
 * token is missing or old. 404: not found. 409: the request is valid, but contradicts itself or the current state. 429: too many wrong
 * tokens, or too many exports at once. 503: the named dependency is down.
 */
export const ApiError = named('ApiError', {
  error: object({ status: count, message: z.string(), kept: z.string().nullable(), next: z.string().nullable() }),
});
export type ApiError = z.infer<typeof ApiError>;

const apiError = (status: number, message: string, { kept, next }: Pick<FaultDetails, 'kept' | 'next'>): ApiError => ({
  error: { status, message, kept: kept ?? null, next: next ?? null },
});

export const BUG = apiError(500, 'this is a bug in tributary', {
  next: 'see the log of the server for details; please report it',
});

/** The response to an error. Undefined: the error is unexpected, and its message may contain anything. */
export function errorAnswer(error: unknown): ApiError | undefined {
  if (error instanceof Fault) return apiError(statusOf(error), error.message, error);
  const { statusCode } = error as { statusCode?: unknown };
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return undefined;
  return apiError(statusCode, MESSAGES[statusCode] ?? 'the request cannot be read', { next: 'see /api/openapi.json' });
}

/** For requests that Fastify refuses; its own messages are for programmers. */
const MESSAGES: Readonly<Record<number, string>> = {
  400: 'the request is not well-formed',
  413: 'the body is too large',
  414: 'the address is too long',
  415: 'the body must be application/json',
};

function statusOf(fault: Fault): number {
  if (fault instanceof HttpError) return fault.status;
  // Malformed requests were refused before; this one is valid, but conflicts with the config or the state.
  if (fault instanceof ConfigError || fault instanceof StreamBusy) return 409;
  // The service refused a request that was sent for the client: this server is the gateway, hence 502.
  if (fault instanceof StopStream) return 502;
  return fault instanceof RetryLater || fault instanceof Cancelled ? 503 : 500;
}
