import type { LiveEvent } from '../../src/http/api-types.ts';
import { ROOM_TOKEN } from './http-room.ts';

/** What a browser's EventSource would get, read by hand: the ids and the beats show too. */
export interface Listening {
  events: Array<LiveEvent & { id: string }>;
  /** Comments that only say that the connection lives. */
  beats(): number;
  /** Settles when the server has ended the stream. */
  ended: Promise<void>;
  close(): void;
}

export async function listenTo(
  url: string,
  lastId?: string,
  who: Record<string, string> = { authorization: `Bearer ${ROOM_TOKEN}` },
): Promise<Listening> {
  const stop = new AbortController();
  const headers = { accept: 'text/event-stream', ...who, ...(lastId !== undefined && { 'last-event-id': lastId }) };
  const response = await fetch(`${url}/api/events`, { headers, signal: stop.signal });
  if (response.headers.get('content-type') !== 'text/event-stream') throw new Error(await response.text());
  const events: Listening['events'] = [];
  let beats = 0;
  const read = async (): Promise<void> => {
    let rest = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        if (block.startsWith(':')) beats += 1;
        const [event, data, id] = [field('event'), field('data'), field('id')];
        if (event && data && id) events.push({ event, data: JSON.parse(data), id } as Listening['events'][number]);
      }
    }
  };
  return { events, beats: () => beats, ended: read().catch(() => {}), close: () => stop.abort() };
}
