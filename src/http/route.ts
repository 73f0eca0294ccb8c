import { Fault, type FaultDetails } from '../model/errors.ts';
import type { Visit } from './access-types.ts';
import type { JsonSchema } from './json-schema.ts';

/** A way to ask something: what the server, the OpenAPI description and the tests are made from. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  /** As OpenAPI writes it: `/api/backfills/{id}`. */
  path: string;
  summary: string;
  /** Query parameters by name. All are optional unless they are among `needs`. */
  query?: Readonly<Record<string, JsonSchema>>;
  needs?: readonly string[];
  /** The name of a schema. */
  body?: string;
  /** The name of the answer's schema; none: there is nothing to say. */
  answer?: string;
  /** 200 unless told. */
  status?: number;
  handle(ask: Ask): Promise<object | undefined>;
}

export interface Ask {
  /** From path and query; numbers are still text. */
  params: Readonly<Record<string, string | undefined>>;
  /** Checked against the schema. */
  body: unknown;
  /** Who asks. */
  visit: Visit;
  setCookie(cookie: string): void;
  /** Aborted when whoever asked has gone. */
  signal: AbortSignal;
}

/** What was asked cannot be answered, and the HTTP status says why. */
export class Refusal extends Fault {
  readonly status: number;

  constructor(status: number, message: string, details: FaultDetails = {}) {
    super(message, details);
    this.status = status;
  }
}
