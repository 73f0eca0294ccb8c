import { ConfigError } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { checkFilters, checkParams } from './filters.ts';

/** One request for one page. */
export interface EventsQuery {
  stream: StreamName;
  start: Instant;
  end: Instant;
  sortOrder: 'asc' | 'desc';
  page: number;
  limit: number;
  filters: Readonly<Record<string, string>>;
}

/**
 * The query as it is sent. Nothing is left to the service's defaults: deployed services differ in what they assume
 * (an `end` without `start` is ignored, the default interval is 24 h or 30 d). A query that cannot be right is refused
 * here, before it costs a request or returns the wrong events.
 */
export function toSearchParams(query: EventsQuery): URLSearchParams {
  const fixed = checkParams({
    event: query.stream,
    // Outwards to whole milliseconds: a row more is dropped by its key, a row less would be lost.
    start: isoMillis(Math.floor(query.start)),
    end: isoMillis(Math.ceil(query.end)),
    timezone: 'UTC',
    sortBy: 'timestamp',
    sortOrder: query.sortOrder,
    page: query.page,
    limit: query.limit,
  });
  const filters = checkFilters(query.stream, query.filters);
  const faults = [...fixed.faults, ...filters.faults].map((fault) => fault.message);
  // Services swap a start after the end instead of refusing it, and answer a question that nobody asked.
  if (query.start > query.end) faults.push('start lies after end');
  if (faults.length > 0) throw new ConfigError(`this query for ${query.stream} cannot be sent:`, { faults });
  return new URLSearchParams({ ...fixed.query, ...filters.query });
}

/** Undefined where it is no instant of the years 0 to 9999: the check above then names it as missing. */
function isoMillis(ms: number): string | undefined {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 0 && year <= 9999 ? date.toISOString() : undefined;
}
