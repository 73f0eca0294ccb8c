import { type Instant, toIso } from '../../src/model/instant.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { createSandboxService } from '../../test/support/odd-service/service.ts';

/**
 * A history of any length without memory: the n-th click is one of a few thousand sandbox records, with a unique id and time.
 * Rendering a page only joins texts, so that the client dominates the measurement.
 */
export interface History {
  /** Before the first click. */
  since: Instant;
  /** The clicks in [start, end) from the oldest or the newest, as the text of a page. */
  page(question: Question): { key: string; text(): string };
}

export interface Question {
  start: Instant;
  end: Instant;
  isAscending: boolean;
  page: number;
  limit: number;
}

/** A busy workspace: 20,000 clicks a day. More rows make the history longer, not denser. */
const STEP_MS = 4320;
const HOUR_MS = 3_600_000;
const TEMPLATES = 4000;
const [ID, TIME] = ['@id@', '@time@'];

export function createHistory(rows: number, now: Instant): History {
  const templates = templatesOf(TEMPLATES);
  // Old enough to be certified.
  const begin = now - HOUR_MS - rows * STEP_MS;

  const click = (n: number): string => {
    const [id, time] = [`clk_${n.toString(36).padStart(12, '0')}`, toIso(begin + n * STEP_MS)];
    const parts = templates[n % templates.length] ?? [];
    return parts.map((part) => (part === ID ? id : part === TIME ? time : part)).join('');
  };
  const firstFrom = (at: Instant): number => Math.min(rows, Math.max(0, Math.ceil((at - begin) / STEP_MS)));

  return {
    since: begin - HOUR_MS,
    page({ start, end, isAscending, page, limit }) {
      const [low, high] = [firstFrom(start), firstFrom(end)];
      const [first, last] = isAscending
        ? [low + (page - 1) * limit, Math.min(high, low + page * limit)]
        : [Math.max(low, high - page * limit), high - (page - 1) * limit];
      return {
        key: `${first} ${last} ${isAscending}`,
        text() {
          const clicks = Array.from({ length: Math.max(0, last - first) }, (_, i) => click(first + i));
          return `[${(isAscending ? clicks : clicks.reverse()).join(',')}]`;
        },
      };
    },
  };
}

/** Records as texts, split at ids and times. */
function templatesOf(number: number): string[][] {
  const service = createSandboxService({ rows: { clicks: number, leads: 0, sales: 0 } });
  return service.events('clicks').map((record) => {
    const stamped = {
      ...record,
      timestamp: TIME,
      click_id: ID,
      click: { ...(record.click as JsonObject), id: ID, timestamp: TIME },
    };
    return JSON.stringify(stamped).split(/(@id@|@time@)/);
  });
}
