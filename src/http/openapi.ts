import { ApiError } from './http-error.ts';
import { pathId, type Route } from './route.ts';
import { componentSchemas, type JsonSchema, schemaOf } from './shapes.ts';

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
