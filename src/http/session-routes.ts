import type { Access } from './access.ts';
import type { Session } from './api-types.ts';
import type { Route } from './route.ts';

/** How a browser signs in and out. */
export const sessionRoutes = (access: Access): Route[] => [
  {
    method: 'GET',
    path: '/api/session',
    summary: 'Whether one is signed in, and the token that changes need.',
    answer: 'Session',
    handle: async ({ visit }): Promise<Session> => access.describe(visit),
  },
  {
    method: 'POST',
    path: '/api/session',
    summary: 'Signs in: the token for a cookie.',
    body: 'SignIn',
    answer: 'Session',
    handle: async ({ visit, body, setCookie }): Promise<Session> => {
      const { cookie, session } = access.signIn(visit, (body as { token: string }).token);
      setCookie(cookie);
      return session;
    },
  },
  {
    method: 'DELETE',
    path: '/api/session',
    summary: 'Signs out.',
    status: 204,
    handle: async ({ visit, setCookie }): Promise<undefined> => {
      setCookie(access.signOut(visit));
      return undefined;
    },
  },
];
