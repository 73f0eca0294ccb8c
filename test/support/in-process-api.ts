import { type EventsQuery, toSearchParams } from '../../src/api/client.ts';
import type { EventsApi } from '../../src/api/events-api.ts';
import type { SandboxService } from './odd-service/service.ts';
import { answerOf } from './service-error.ts';

export interface InProcessApi extends EventsApi {
  readonly queries: readonly EventsQuery[];
  /** Called before each answer; what it throws is the answer. */
  onRequest: (query: EventsQuery, count: number) => void;
  /** Called with the records of each answer. */
  onAnswer: (records: readonly unknown[]) => void;
}

/** The sandbox service without HTTP in between: what it says, parsed, with its refusals as the typed errors of src/api. */
export function createInProcessApi(service: SandboxService): InProcessApi {
  const queries: EventsQuery[] = [];
  const api: InProcessApi = {
    queries,
    onRequest: () => {},
    onAnswer: () => {},
    stats: () => ({ requests: queries.length, retries: 0, tooManyRequests: 0, bytes: 0 }),
    async page(query) {
      queries.push(query);
      api.onRequest(query, queries.length);
      const { body } = answerOf(() => service.list(toSearchParams(query)));
      const records = JSON.parse(body) as unknown[];
      api.onAnswer(records);
      return { records, serverNow: service.now(), bytes: body.length, tookMs: 0 };
    },
  };
  return api;
}
