import type { Readable } from 'node:stream';
import type { Visitor } from './access.ts';
import { ApiError, componentSchemas, type JsonSchema, schemaOf, shortText, type z } from './answers.ts';
import type { Role } from './tokens.ts';

/** One endpoint. The server, the OpenAPI document and the tests are all derived from it. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  /** As OpenAPI writes it: `/api/backfills/{id}`. */
  path: string;
  summary: string;
  role: Role | 'open';
  /** The schema of the path's parameter; by default a short text. */
  id?: z.ZodType<string> | undefined;
  query?: z.ZodObject | undefined;
  body?: z.ZodType | undefined;
  /** Undefined: the answer is empty, or is not JSON. */
  answer?: z.ZodType | undefined;
  /** The content types of an answer that is not JSON: see `FileAnswer`. */
  media?: readonly string[] | undefined;
  status?: number | undefined;
  /** The dependencies it needs; by default only the state. */
  uses?: ReadonlyArray<'state' | 'queue'> | undefined;
  /** For a route that changes something: its entry in the audit trail. */
  audit?: ((request: RouteRequest<never, never>) => AuditNote) | undefined;
  handle(request: RouteRequest<never, never>): Promise<object | undefined>;
}

interface AuditNote {
  action: string;
  target?: string | undefined;
  detail?: Readonly<Record<string, unknown>> | undefined;
}

interface RouteOf<Q extends z.ZodObject, B extends z.ZodType, A extends z.ZodType>
  extends Omit<Route, 'method' | 'path' | 'role' | 'audit' | 'handle'> {
  /** By default `read` for GET, and `operator` for other methods. */
  role?: Route['role'];
  query?: Q;
  body?: B;
  answer?: A;
  audit?(request: RouteRequest<z.output<Q>, z.output<B>>): AuditNote;
  handle(request: RouteRequest<z.output<Q>, z.output<B>>): Promise<z.output<A> | FileAnswer | undefined>;
}

/** Defines a route such as `GET /api/runs/{id}`. Its types make the compiler check the handler against the schemas. */
export function route<
  Q extends z.ZodObject = z.ZodObject<Record<never, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
  A extends z.ZodType = z.ZodType<undefined>,
>(call: `${Route['method']} /${string}`, definition: RouteOf<Q, B, A>): Route {
  const [method, path] = call.split(' ');
  return { role: method === 'GET' ? 'read' : 'operator', ...definition, method, path } as unknown as Route;
}

export interface RouteRequest<Q, B> {
  id: string;
  query: Q;
  body: B;
  visitor: Visitor | undefined;
  address: string;
  /** Whether the connection, or the one to the proxy, is encrypted. */
  isSecure: boolean;
  setCookie(cookie: string): void;
  /** Counts a wrong token from this address, and throws after too many. */
  onWrongToken(): Promise<void>;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
}

export const pathId = shortText.min(1);

export class FileAnswer {
  readonly file: {
    type: string;
    body: string | Readable;
    headers?: Readonly<Record<string, string>>;
    /** Values that are known only after the last byte was written. */
    trailers?: Readonly<Record<string, () => Promise<string>>>;
  };

  constructor(file: FileAnswer['file']) {
    this.file = file;
  }
}

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
        'The control room: how far each stream is complete, and the actions of the command line. Times are ISO 8601 in UTC; unknown values are null.',
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
          description: 'for browsers: changes need the header x-csrf-token too, which GET /api/session returns',
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
      default: { description: 'refused: the message has the reason and what to do', content: json(schemaOf(ApiError)) },
    },
  };
}

/** Plain text is described as a string; any other file format is left undescribed. */
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

/** Such as `getApiRunsId`: unique, because the pair of path and method is. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

const json = (schema: JsonSchema): object => ({ 'application/json': { schema } });
