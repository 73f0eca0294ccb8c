import { listAudit, recordAudit } from '../../cursor/audit.ts';
import type { Access, Visitor } from '../access.ts';
import { HttpError, limit, listOf, longText, moment, named, z } from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { ROLES } from '../tokens.ts';

const Session = named('Session', {
  signedIn: z.boolean(),
  name: z.string().nullable().describe('of the token that was given'),
  role: z.nullable(z.enum(ROLES)),
  csrf: z.string().nullable().describe('browsers send it in the header x-csrf-token with every change'),
});
const SignIn = named('SignIn', { token: longText });

export type Session = z.infer<typeof Session>;

const AuditTrail = named('AuditTrail', {
  entries: listOf({
    id: z.string(),
    at: moment,
    actor: z.string().describe('the name of a token, or the user who ran a command'),
    action: z.string(),
    target: z.string().nullable(),
    from: z.string().nullable().describe('the address of the request, or the host of the command'),
    detail: z.record(z.string(), z.unknown()),
  }),
  next: z.string().nullable().describe('`before` of the next page'),
});

export type AuditTrail = z.infer<typeof AuditTrail>;

export function sessionRoutes(access: Access, { state }: Pick<ControlDeps, 'state'>): Route[] {
  const describe = (visitor: Visitor | undefined): Session => ({
    signedIn: visitor !== undefined,
    name: visitor?.name ?? null,
    role: visitor?.role ?? null,
    csrf: visitor ? access.csrfOf(visitor) : null,
  });
  return [
    route('GET /api/session', {
      summary: 'The signed-in user, and the CSRF token that changes need.',
      role: 'open',
      answer: Session,
      handle: async ({ visitor }) => describe(visitor),
    }),
    route('POST /api/session', {
      summary: 'Signs in: exchanges a token for a session cookie.',
      role: 'open',
      body: SignIn,
      answer: Session,
      async handle(request) {
        const signedIn = access.signIn(request.body.token, request.isSecure);
        if (!signedIn) {
          await request.onWrongToken();
          throw new HttpError(401, 'that is not the token', {
            next: 'use a token of the config, or the link that tributary start prints',
          });
        }
        await recordAudit(state, { actor: signedIn.visitor.name, action: 'session.start', from: request.address });
        request.setCookie(signedIn.cookie);
        return describe(signedIn.visitor);
      },
    }),
    route('DELETE /api/session', {
      summary: 'Ends the session permanently: all copies of its cookie become invalid.',
      role: 'metrics',
      status: 204,
      audit: () => ({ action: 'session.end' }),
      async handle({ visitor, isSecure, setCookie }) {
        if (visitor?.session) setCookie(await access.signOut(visitor.session, isSecure));
        return undefined;
      },
    }),
    route('GET /api/audit', {
      summary: 'Every change made by a person, newest first: who, what, when, from where.',
      role: 'admin',
      query: z.strictObject({
        limit: limit(50),
        before: z
          .string()
          .regex(/^\d{1,18}$/)
          .optional(),
      }),
      answer: AuditTrail,
      async handle({ query: { limit: most, before } }) {
        const found = await listAudit(state, { limit: most + 1, before });
        const entries = found.slice(0, most);
        return { entries, next: found.length > most ? (entries.at(-1)?.id ?? null) : null };
      },
    }),
  ];
}
