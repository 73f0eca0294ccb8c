import type { LinksQuery, Page } from '../../api/client.ts';
import type { EventsApi } from '../../api/events-api.ts';
import { BadRecord, StopStream, statusOf } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import type { FlattenLink } from './link-row.ts';
import type { AskPage, LinkPage } from './pass.ts';

interface Asking {
  api: EventsApi<LinksQuery>;
  flatten: FlattenLink;
  signal: AbortSignal;
}

/** Asks the service for pages of links, oldest or newest first; without an order if the service refuses to sort. */
export function createAskPage({ api, flatten, signal }: Asking): AskPage {
  let isSorted = true;
  let hasAnswered = false;

  return async ({ page, pageSize, sortOrder, isTrial }) => {
    const tries = isTrial ? 1 : undefined;
    const get = (query: LinksQuery): Promise<Page> => api.page(query, { lane: 'fresh', signal, tries });
    const query = { stream: 'links', page, pageSize } as const;
    const answer = await get({ ...query, ...(isSorted && { sortOrder }) }).catch((error: unknown) => {
      // Recovery: the contract does not say how links can be sorted. If something else was refused, the retry fails, too.
      const isRefused = error instanceof StopStream && [400, 422].includes(statusOf(error) ?? 0);
      if (!isRefused || !isSorted || hasAnswered) throw error;
      isSorted = false;
      return get(query);
    });
    hasAnswered = true;
    return { ...readRecords(answer.records, page, flatten), now: answer.serverNow ?? Date.now() };
  };
}

/** One record that is not a link leaves the others usable; a page without any link is not a listing. */
function readRecords(records: readonly unknown[], page: number, flatten: FlattenLink): Omit<LinkPage, 'now'> {
  const rows: Row[] = [];
  let unusable: string | undefined;
  for (const record of records) {
    try {
      rows.push(flatten(record));
    } catch (error) {
      if (!(error instanceof BadRecord)) throw error;
      unusable ??= error.message;
    }
  }
  if (unusable === undefined) return { rows };
  if (rows.length > 0) return { rows, unusable: `on page ${page}: ${unusable}` };
  throw new StopStream(`the listing shows something that is not a link, on page ${page}: ${unusable}`, {
    answer: { status: 200, code: 'not_a_link', message: unusable },
    next: 'check the answer of GET /links, which must be a JSON list of links; events are still synced',
  });
}
