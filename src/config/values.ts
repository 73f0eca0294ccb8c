import { z } from 'zod';

/** Kinds of values that several parts of the config share. */

/** Names become parts of SQL, paths and keys; these characters are safe in all of them. */
export const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'names are lower-case letters, digits, _ and -, at most 40');

/** What the environment filled in is text; a number is meant. */
export const number = z.union(
  [
    z.number(),
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number),
  ],
  { error: 'must be a number' },
);

/** An empty value is an unset variable: `${DATABASE_URL:-}`. */
export const optionalText = z
  .string()
  .optional()
  .transform((text) => text || undefined);
