import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { eitherSignal } from '../api/cancel.ts';
import { audited } from '../cursor/audit.ts';
import type { ControlDeps } from './dependencies.ts';
import type { Guard } from './guard.ts';
import { HttpError } from './http-error.ts';
import { FileAnswer, pathId, type Route, type RouteRequest } from './route.ts';
import { type JsonSchema, schemaOf, z } from './shapes.ts';

type Deps = Pick<ControlDeps, 'state' | 'dependencies' | 'signal'> & Pick<Guard, 'onWrongToken'>;
type Asked = RouteRequest<never, never>;

/** Serves a route: checks what was asked, leaves an entry in the audit trail, and waits no longer than its dependencies answer. */
export function addEndpoint(app: FastifyInstance, route: Route, deps: Deps): void {
  const { method, path, media, status = 200, uses = ['state'] } = route;
  const check = checkerOf(route);
  app.route({
    method,
    // A download costs what it costs, whether or not somebody takes it.
    exposeHeadRoute: !media,
    url: path.replace(/\{(\w+)\}/g, ':$1'),
    config: { role: route.role },
    handler: async (request, reply) => {
      const checked = check(request);
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const either = eitherSignal(gone.signal, deps.signal);
      const asked = {
        ...checked,
        ...surroundings(request, reply),
        onWrongToken: () => deps.onWrongToken(request),
        signal: either.signal,
      } as Asked;
      try {
        const answer = await deps.dependencies.watch(handled(deps, route, asked), uses);
        reply.status(status).header('cache-control', 'no-store');
        return await (answer instanceof FileAnswer ? sendFile(reply, answer) : reply.send(answer));
      } finally {
        either.letGo();
      }
    },
  });
}

const surroundings = (request: FastifyRequest, reply: FastifyReply) => ({
  visitor: request.visitor,
  address: request.ip,
  // Behind a proxy that speaks TLS, the cookie must not travel without it. Who lies here only harms himself.
  isSecure: request.protocol === 'https' || request.headers['x-forwarded-proto'] === 'https',
  setCookie: (cookie: string) => void reply.header('set-cookie', cookie),
});

function handled({ state }: Deps, { audit, handle }: Route, asked: Asked): Promise<object | undefined> {
  const note = audit?.(asked);
  if (!note) return handle(asked);
  const entry = { actor: asked.visitor?.name ?? 'nobody', from: asked.address, ...note };
  return audited(state, entry, () => handle(asked));
}

function checkerOf({
  id: idShape = pathId,
  query,
  body,
}: Route): (request: FastifyRequest) => { id: string; query: unknown; body: unknown } {
  const queryShape = query ?? z.strictObject({});
  const { properties = {} } = schemaOf(queryShape);
  return (request) => ({
    id: Object.values(request.params as Record<string, string>).map((id) => checked(idShape, id, 'the path'))[0] ?? '',
    query: checked(queryShape, typed(request.query as Record<string, unknown>, properties), 'the query'),
    body: body && checked(body, request.body, 'the body'),
  });
}

function checked<T extends z.ZodType>(shape: T, value: unknown, place: string): z.output<T> {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = [place, ...(issue?.path ?? [])].join(', ');
  throw new HttpError(400, `${at}: ${issue ? wordsFor(issue) : 'not as described'}`, { next: 'see /api/openapi.json' });
}

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

/** What is wrong, as a person says it; the library's own words are for programmers. */
function wordsFor(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'invalid_type') return `must be of the type ${issue.expected}`;
  if (issue.code === 'unrecognized_keys') return `there is no ${issue.keys.join(', ')}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
  return issue.code === 'invalid_union' ? 'is none of the forms that are described' : issue.message;
}

/** Queries are text: numbers, flags and lists among them are read as what the schema says they are. */
function typed(
  query: Readonly<Record<string, unknown>>,
  schemas: Readonly<Record<string, JsonSchema | boolean>>,
): object {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const schema = schemas[name];
      const type = typeof schema === 'object' ? schema.type : undefined;
      if (type === 'integer' && typeof value === 'string' && /^-?\d{1,16}$/.test(value)) return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, type === 'array' ? [value].flat() : value];
    }),
  );
}

function sendFile(reply: FastifyReply, { type, body, headers, trailers }: FileAnswer): FastifyReply {
  for (const [name, value] of Object.entries(trailers)) reply.trailer(name, value);
  return reply.type(type).headers(headers).send(body);
}
