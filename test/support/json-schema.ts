import { z } from 'zod';

/** What tests look at of the API's description. */
export interface ApiDescription {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

interface Operation {
  operationId: string;
  parameters?: Array<{
    name: string;
    in: 'path' | 'query';
    required: boolean;
    schema: { enum?: readonly unknown[]; minimum?: number; maximum?: number };
  }>;
  requestBody?: object;
  responses: Record<string, { content?: { 'application/json': { schema: object } } }>;
}

/** Where a value is not what a schema of the description says, place by place. */
export function mismatches(value: unknown, schema: object, { components }: ApiDescription): string[] {
  const named = JSON.stringify({ ...schema, $defs: components.schemas }).replaceAll(
    '#/components/schemas/',
    '#/$defs/',
  );
  const { error } = z.fromJSONSchema(JSON.parse(named)).safeParse(value);
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
}
