import type { Readable } from 'node:stream';
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
  /** The name of the answer's schema; none: there is nothing to say, or it is no JSON. */
  answer?: string;
  /** The types of an answer that is no JSON: see `Plain`. */
  media?: readonly string[];
  /** 200 unless told. */
  status?: number;
  handle(ask: Ask): Promise<object | undefined>;
}

/** An answer that is no JSON. */
export class Plain {
  readonly type: string;
  readonly body: string | Readable;
  readonly extras: PlainExtras;

  constructor(type: string, body: string | Readable, extras: PlainExtras = {}) {
    this.type = type;
    this.body = body;
    this.extras = extras;
  }
}

interface PlainExtras {
  headers?: Readonly<Record<string, string>>;
  /** What is known only when the last byte has been written. */
  trailers?: Readonly<Record<string, () => Promise<string>>>;
}

export interface Ask {
  /** From path and query; numbers are still text. */
  params: Readonly<Record<string, string | undefined>>;
  /** A query parameter that may come several times. */
  list(name: string): string[];
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
  /** Seconds, where waiting helps. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, details: FaultDetails & { retryAfter?: number } = {}) {
    super(message, details);
    this.status = status;
    this.retryAfter = details.retryAfter;
  }
}
