import type { ServerResponse } from 'node:http';
import type { Live } from './live.ts';
import { Refusal } from './route.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Server-sent events, for so many and no more: each of them costs a connection and a copy of all that happens. */
export interface Events {
  /** Throws where too many listen already: before anything was said, so that it can be said why. */
  checkRoom(): void;
  serve(raw: ServerResponse, lastId: string | undefined): void;
}

const MOST_LISTENERS = 200;
const RETRY_SECONDS = 30;
/** More than a browser that is back after minutes gets at once. */
const MOST_WAITING_BYTES = 1_000_000;

/** The last is for proxies that would hold events back until there are many of them. */
const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };

export function createEvents(live: Pick<Live, 'listen'>): Events {
  let listeners = 0;
  return {
    checkRoom() {
      if (listeners < MOST_LISTENERS) return;
      throw new Refusal(503, `${MOST_LISTENERS} pages listen already`, {
        next: 'close some of them; everything else of the API answers as ever',
        retryAfter: RETRY_SECONDS,
      });
    },
    serve(raw, lastId) {
      listeners += 1;
      raw.writeHead(200, { ...SECURITY_HEADERS, ...HEADERS });
      // A browser that sleeps does not read; what waits for it is dropped, and it begins anew when it wakes up.
      const send = (text: string) => (raw.writableLength > MOST_WAITING_BYTES ? raw.destroy() : raw.write(text));
      const leave = live.listen(send, lastId);
      raw.once('close', () => {
        listeners -= 1;
        leave();
      });
    },
  };
}
