import { API_SCHEMAS } from './api-schemas.ts';
import { type JsonSchema, ref } from './json-schema.ts';
import type { Route } from './route.ts';

/** The routes as OpenAPI 3.1, so that programs can be made from them. */
export function describeApi(routes: readonly Route[], version: string): object {
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
    security: [{ token: [] }, { session: [] }, {}],
    paths,
    components: {
      schemas: API_SCHEMAS,
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'http.token of the config, for programs' },
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

function operationOf({
  method,
  path,
  summary,
  query = {},
  needs = [],
  body,
  answer,
  media,
  status = 200,
}: Route): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    required: needs.includes(name),
    schema,
  }));
  return {
    operationId: operationId(method, path),
    summary,
    ...(inPath.length + inQuery.length > 0 && { parameters: [...inPath, ...inQuery] }),
    ...(body && { requestBody: { required: true, content: json(ref(body)) } }),
    responses: {
      [status]: {
        description: 'done',
        ...(answer && { content: json(ref(answer)) }),
        ...(media && { content: plain(media) }),
      },
      default: { description: 'refused: the message says why, and what to do', content: json(ref('ApiError')) },
    },
  };
}

/** `getApiRunsId`: unique, since path and method together are. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

const plain = (types: readonly string[]): object =>
  Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }]));
const json = (schema: JsonSchema): object => ({ 'application/json': { schema } });
