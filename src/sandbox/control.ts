import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { ConfigError } from '../model/errors.ts';
import { parseJson } from '../model/json.ts';
import { STREAM_NAMES } from '../model/streams.ts';
import { type Answer, json } from './answer.ts';
import type { JsonObject } from './data/types.ts';
import { HttpError } from './params.ts';
import { FAULT_KEYS, type FaultRule } from './requests.ts';
import type { SandboxService } from './service.ts';

export const CONTROL_PREFIX = '/_sandbox/';

/** Controls for users in another process, see docs/sandbox.md. Each receives the body of a POST and returns the response. */
const CONTROLS: Readonly<Record<string, (service: SandboxService, body: unknown) => unknown>> = {
  'GET stats': (service) => service.stats(),
  'GET requests': (service) => service.log.entries,
  'GET truth': (service) => Object.fromEntries(STREAM_NAMES.map((stream) => [stream, service.truth(stream)])),
  'GET links': (service) => service.linkListing.all().map(({ id }) => id),
  'POST links': (service, body) => changeLinks(service, object(body)),
  'GET traits': (service) => service.traits,
  'POST traits'(service, body) {
    service.changeTraits(traitTexts(object(body)));
    return service.traits;
  },
  'POST faults'(service, body) {
    service.faults.add(...readFaults(body));
    return { pendingFaults: service.faults.pending };
  },
  'POST events': (service, body) => takeEvents(service, object(body)),
};

export async function control(service: SandboxService, request: IncomingMessage, path: string): Promise<Answer> {
  const call = `${request.method} ${path.slice(CONTROL_PREFIX.length)}`;
  const work = Object.hasOwn(CONTROLS, call) ? CONTROLS[call] : undefined;
  try {
    if (!work) throw new HttpError('not_found', `the sandbox has no control ${call}`);
    return json(200, work(service, request.method === 'POST' ? await bodyOf(request) : undefined));
  } catch (error) {
    // Recovery: a mistake in a control request gets a 400. Anything else is a bug, and is thrown.
    if (error instanceof ConfigError) throw new HttpError('bad_request', error.describe());
    throw error;
  }
}

const traitTexts = (changes: JsonObject): string[] =>
  Object.entries(changes).map(([name, value]) => `${name}=${value === null || value === false ? '' : String(value)}`);

function readFaults(value: unknown): FaultRule[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map((plan) => {
    const odd = Object.keys(object(plan)).find((name) => !FAULT_KEYS.some((known) => known === name));
    if (odd !== undefined)
      throw new HttpError('bad_request', `a fault has no "${odd}"; it has ${FAULT_KEYS.join(', ')}`);
    return plan as FaultRule;
  });
}

function changeLinks({ linkListing }: SandboxService, { make = 0, remove = [] }: JsonObject): object {
  const made = Array.from({ length: Number(make) }, () => linkListing.make().id);
  const removed = (Array.isArray(remove) ? remove : []).filter((id) => linkListing.remove(String(id)));
  return { made, removed };
}

function takeEvents(service: SandboxService, body: JsonObject): object {
  const stream = STREAM_NAMES.find((name) => name === body.stream);
  if (!stream) throw new HttpError('bad_request', `stream must be one of ${STREAM_NAMES.join(', ')}`);
  const { generate = 0, from = service.now() - 1, to = service.now() - 1 } = body;
  return { generated: service.arrive(stream, Number(generate), { from: Number(from), to: Number(to) }) };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const body = await text(request);
  try {
    return parseJson(body);
  } catch {
    throw new HttpError('bad_request', 'the body is not JSON');
  }
}

function object(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new HttpError('bad_request', 'expected a JSON object');
}
