import type { Readable } from 'node:stream';
import type { Visitor } from './access.ts';
import { ApiError, componentSchemas, type JsonSchema, schemaOf, shortText, type z } from './answers.ts';
import type { Role } from './tokens.ts';

/** A way to ask something: the server, the OpenAPI document and the tests are made from it. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  /** As OpenAPI writes it: `/api/backfills/{id}`. */
  path: string;
  summary: string;
  /** Who may: this role and those above it. */
  role: Role | 'open';
  /** What may stand in the braces of the path; a short text unless told. */
  id?: z.ZodType<string> | undefined;
  query?: z.ZodObject | undefined;
  body?: z.ZodType | undefined;
  /** None: there is nothing to say, or it is no JSON. */
  answer?: z.ZodType | undefined;
  /** The types of an answer that is no JSON: see `FileAnswer`. */
  media?: readonly string[] | undefined;
  /** 200 unless told. */
  status?: number | undefined;
  /** Which dependencies it waits for; the state unless told. */
  uses?: ReadonlyArray<'state' | 'queue'> | undefined;
  /** Of a change: the row that it leaves in the audit trail. */
  audit?: ((request: RouteRequest<never, never>) => AuditNote) | undefined;
  handle(request: RouteRequest<never, never>): Promise<object | undefined>;
}

interface AuditNote {
  action: string;
  target?: string | undefined;
  detail?: Readonly<Record<string, unknown>> | undefined;
}

interface RouteOf<Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType>
  extends Omit<Route, 'audit' | 'handle'> {
  query?: Q;
  body?: B;
  answer?: A;
  audit?(request: RouteRequest<z.output<Q>, z.output<B>>): AuditNote;
  handle(request: RouteRequest<z.output<Q>, z.output<B>>): Promise<z.output<A> | FileAnswer | undefined>;
}

/** Holds the handler to the shapes that the route names. */
export const route = <
  Q extends z.ZodObject = z.ZodObject<Record<never, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
  A extends z.ZodType = z.ZodType<undefined>,
>(
  definition: RouteOf<Q, B, A>,
): Route => definition as unknown as Route;

/** What was asked, checked against the shapes of the route. */
export interface RouteRequest<Q, B> {
  /** What stands in the braces of the path. */
  id: string;
  query: Q;
  body: B;
  visitor: Visitor | undefined;
  /** Where the request came from. */
  address: string;
  /** Whether the connection, or the proxy's, is encrypted. */
  isSecure: boolean;
  setCookie(cookie: string): void;
  /** Counts a wrong token of this address, and throws where there were too many. */
  onWrongToken(): Promise<void>;
  /** Aborted when whoever asked has gone. */
  signal: AbortSignal;
}

export const pathId = shortText.min(1);

/** An answer that is no JSON. */
export class FileAnswer {
  readonly type: string;
  readonly body: string | Readable;
  readonly headers: Readonly<Record<string, string>>;
  /** What is known only when the last byte has been written. */
  readonly trailers: Readonly<Record<string, () => Promise<string>>>;

  constructor(type: string, body: string | Readable, extras: Partial<Pick<FileAnswer, 'headers' | 'trailers'>> = {}) {
    this.type = type;
    this.body = body;
    this.headers = extras.headers ?? {};
    this.trailers = extras.trailers ?? {};
  }
}

/** The routes as OpenAPI 3.1, so that programs can be made from them. */
export function describeApi(routes: readonly Route[], { version, base }: { version: string; base: string }): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tributary',
      version,
      description:
        'The control room: how far each stream is complete, and the verbs of the command line. Moments are ISO 8601 in UTC; what is unknown is null.',
    },
    servers: [{ url: base === '' ? '/' : base }],
    security: [{ token: [] }, { session: [] }],
    paths,
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'a token of the config, or the one made at first start' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'tributary_session',
          description: 'for browsers: changes need the header x-csrf-token too, which GET /api/session tells',
        },
      },
    },
  };
}

function operationOf({ method, path, summary, role, id, query, body, answer, media, status = 200 }: Route): object {
  const parameters = [...parametersIn(path, id), ...(query ? parametersOf(query) : [])];
  return {
    operationId: operationId(method, path),
    summary,
    ...(role === 'open' ? { security: [] } : { description: `Needs the role ${role}.` }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: json(schemaOf(body)) } }),
    responses: {
      [status]: {
        description: 'done',
        ...(answer && { content: json(schemaOf(answer)) }),
        ...(media && { content: Object.fromEntries(media.map((type) => [type, { schema: fileSchema(type) }])) }),
      },
      default: { description: 'refused: the message says why, and what to do', content: json(schemaOf(ApiError)) },
    },
  };
}

/** Text is text. What a reader parses, or what is bytes, is not described further. */
const fileSchema = (type: string): JsonSchema => (/^text|sql|ndjson/.test(type) ? { type: 'string' } : {});

const parametersIn = (path: string, shape: Route['id'] = pathId): object[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: schemaOf(shape) }));

function parametersOf(query: NonNullable<Route['query']>): object[] {
  const { properties = {}, required = [] } = schemaOf(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
}

/** `getApiRunsId`: unique, since path and method together are. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

const json = (schema: JsonSchema): object => ({ 'application/json': { schema } });
