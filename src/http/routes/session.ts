import type { AuditEntry } from '../../cursor/audit.ts';
import type { Access, Visitor } from '../access.ts';
import { HttpError } from '../http-error.ts';
import { type Route, route } from '../route.ts';
import { flag, longText, named, object, oneOf, orNull, text, type z } from '../shapes.ts';
import { ROLES } from '../tokens.ts';

const Session = named(
  'Session',
  object({
    signedIn: flag,
    name: orNull(text).describe('of the token that was given'),
    role: orNull(oneOf(ROLES)),
    csrf: orNull(text).describe('goes into the header x-csrf-token of every change that a browser asks for'),
  }),
);
const SignIn = named('SignIn', object({ token: longText }));

export type Session = z.infer<typeof Session>;

/** How a browser signs in and out. */
export function sessionRoutes(access: Access, record: (entry: AuditEntry) => Promise<void>): Route[] {
  const describe = (visitor: Visitor | undefined): Session => ({
    signedIn: visitor !== undefined,
    name: visitor?.name ?? null,
    role: visitor?.role ?? null,
    csrf: visitor ? access.csrfOf(visitor) : null,
  });
  return [
    route({
      method: 'GET',
      path: '/api/session',
      summary: 'Who one is signed in as, and the CSRF token that changes need.',
      role: 'open',
      answer: Session,
      handle: async ({ visitor }) => describe(visitor),
    }),
    route({
      method: 'POST',
      path: '/api/session',
      summary: 'Signs in: a token for a cookie.',
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
        await record({ actor: signedIn.visitor.name, action: 'session.start', from: request.address });
        request.setCookie(signedIn.cookie);
        return describe(signedIn.visitor);
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/session',
      summary: 'Signs out, for good: the cookie is worth nothing any more, whoever kept it.',
      role: 'metrics',
      status: 204,
      audit: () => ({ action: 'session.end' }),
      async handle({ visitor, isSecure, setCookie }) {
        if (visitor?.session) setCookie(await access.signOut(visitor.session, isSecure));
        return undefined;
      },
    }),
  ];
}
