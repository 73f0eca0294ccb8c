import type { ServerResponse } from 'node:http';
import type { Access, Visitor } from './access.ts';
import { HttpError } from './http-error.ts';
import type { Live } from './live.ts';

/** Server-sent events, for so many and no more: each of them costs a connection and a copy of all that happens. */
export interface Events {
  /** Throws where too many listen already: before anything was said, so that it can be said why. */
  checkRoom(): void;
  serve(
    raw: ServerResponse,
    headers: Readonly<Record<string, string>>,
    from: { visitor: Visitor; lastId: string | undefined },
  ): void;
  close(): void;
}

const MOST_LISTENERS = 200;
const RETRY_SECONDS = 30;
/** More than a browser that is back after minutes gets at once. */
const MOST_WAITING_BYTES = 1_000_000;
/** How soon a listener goes whose session or token has expired, or was ended on another server. */
const CHECK_MS = 2000;

/** The last is for proxies that would hold events back until there are many of them. */
const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };

export function createEvents(live: Pick<Live, 'listen'>, access: Pick<Access, 'holds' | 'onChange'>): Events {
  const listeners = new Map<ServerResponse, Visitor>();
  const showOut = (): void => {
    for (const [raw, visitor] of listeners) if (!access.holds(visitor)) raw.end();
  };
  access.onChange(showOut);
  const checking = setInterval(showOut, CHECK_MS).unref();
  return {
    checkRoom() {
      if (listeners.size < MOST_LISTENERS) return;
      throw new HttpError(503, `${MOST_LISTENERS} pages listen already`, {
        next: 'close some of them; everything else of the API answers as ever',
        retryAfter: RETRY_SECONDS,
      });
    },
    serve(raw, headers, { visitor, lastId }) {
      listeners.set(raw, visitor);
      raw.writeHead(200, { ...headers, ...HEADERS });
      // A browser that sleeps does not read; what waits for it is dropped, and it starts over when it wakes up.
      const send = (text: string) => (raw.writableLength > MOST_WAITING_BYTES ? raw.destroy() : raw.write(text));
      const leave = live.listen(send, lastId);
      raw.once('close', () => {
        listeners.delete(raw);
        leave();
      });
    },
    close: () => clearInterval(checking),
  };
}
