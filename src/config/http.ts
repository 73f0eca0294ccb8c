import { z } from 'zod';
import { parseInstant } from '../model/instant.ts';
import { name, number, optionalText } from './values.ts';

/** `http` of the config: where the control room listens, and who may come in. */

/** Shorter ones can be guessed. */
const SHORTEST_TOKEN = 16;
const A_TOKEN = `must have at least ${SHORTEST_TOKEN} characters: openssl rand -hex 32 makes a good one`;

const namedToken = z.strictObject({
  token: z.string().min(SHORTEST_TOKEN, A_TOKEN).describe('the secret; take it from the environment'),
  role: z
    .enum(['metrics', 'read', 'operator', 'admin'])
    .describe(
      'metrics: /metrics · read: also look · operator: also sync, backfill, verify, export · admin: everything',
    ),
  expires: z
    .string()
    .refine((text) => parseInstant(text) !== undefined, 'must be a date such as 2027-01-01')
    .transform((text) => parseInstant(text))
    .optional()
    .describe('from this moment on it is refused'),
});

export const http = z.strictObject({
  host: z.string().default('127.0.0.1').describe('where to listen; any but a loopback address needs a token'),
  port: number
    .refine((port) => Number.isInteger(port) && port >= 0 && port <= 65_535, 'must be a port number')
    .default(7070)
    .describe('0 takes a free one'),
  token: optionalText
    .refine((token) => token === undefined || token.length >= SHORTEST_TOKEN, A_TOKEN)
    .describe(
      'the secret of an admin, from the environment; absent: one is made at the first start, in .tributary/http-token',
    ),
  tokens: z
    .record(name, namedToken)
    .default({})
    .describe('further tokens, each under the name that the audit trail shows; SIGHUP reads them again'),
  trustProxy: z
    .union([z.boolean(), z.array(z.string())])
    .default(false)
    .describe('whether a proxy in front is believed about the address of a request: true, or the addresses of proxies'),
  basePath: z
    .string()
    .regex(/^(?:\/[A-Za-z0-9._~-]+)*$/, 'must be a path such as /etl, without a slash at its end')
    .default('')
    .describe('the path that a proxy serves it under, such as /etl'),
});
