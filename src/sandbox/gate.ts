import type { IncomingMessage } from 'node:http';
import type { Plan } from './limiter.ts';
import { Refusal } from './refusal.ts';
import type { Traits } from './traits.ts';

const FORBIDDEN = {
  permission: 'Your API key lacks the permission analytics.read for this workspace.',
  plan: 'Analytics and events need a paid plan: upgrade to Business or higher.',
  usage: 'Your workspace has exceeded its monthly events usage. Upgrade, or wait for the next billing cycle.',
} as const;

export function checkKey(request: IncomingMessage, apiKey: string): void {
  const given = request.headers.authorization;
  if (given === undefined) throw new Refusal('unauthorized', 'Missing Authorization header: Bearer <API_KEY>.');
  if (given !== `Bearer ${apiKey}`) throw new Refusal('unauthorized', 'Invalid API key or access token.');
}

/** What stops a request with a good key: the address, the method, the plan, the permission. */
export function checkAccess(request: IncomingMessage, path: string, plan: Plan, { forbidden }: Traits): void {
  if (path !== '/events') throw new Refusal('not_found', `Nothing is found at ${path}.`);
  if (request.method !== 'GET') throw new Refusal('bad_request', `${request.method} is not allowed here.`, 405);
  if (plan === 'free') throw new Refusal('forbidden', FORBIDDEN.plan);
  if (forbidden) throw new Refusal('forbidden', FORBIDDEN[forbidden]);
}
