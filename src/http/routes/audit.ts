import { listAudit } from '../../cursor/audit.ts';
import type { ControlDeps } from '../deps.ts';
import { type Route, route } from '../route.ts';
import { limit, list, moment, named, object, orNull, text, z } from '../shapes.ts';

const AuditTrail = named(
  'AuditTrail',
  object({
    entries: list(
      object({
        id: text,
        at: moment,
        actor: text.describe('the name of a token, or the user who ran a command'),
        action: text,
        target: orNull(text),
        from: orNull(text).describe('the address of the request, or the host of the command'),
        detail: z.record(z.string(), z.unknown()),
      }),
    ),
    next: orNull(text).describe('`before` of the next page'),
  }),
);

export type AuditTrail = z.infer<typeof AuditTrail>;

export const auditRoute = ({ state }: Pick<ControlDeps, 'state'>): Route =>
  route({
    method: 'GET',
    path: '/api/audit',
    summary: 'Every change that somebody asked for, the newest first: who, what, when, from where.',
    role: 'admin',
    query: object({
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
  });
