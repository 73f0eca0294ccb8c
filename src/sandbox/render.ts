import { stringifyJson } from '../model/json.ts';
import { reshape } from './reshape.ts';
import { type Read, type Reading, readEvent } from './shape.ts';
import type { StoredEvent } from './types.ts';

/** One event as the API gives it now: link and customer joined at this moment, traits applied. */
export function render(event: StoredEvent, reading: Reading): Read {
  return event.raw ? structuredClone(event.raw) : reshape(readEvent(event, reading), event, reading.traits);
}

/** The text of the page. Only records that were handed in can hold integers that JSON.stringify refuses. */
export function renderPage(events: readonly StoredEvent[], reading: Reading): string {
  const texts = events.map((event) =>
    event.raw ? stringifyJson(event.raw) : JSON.stringify(reshape(readEvent(event, reading), event, reading.traits)),
  );
  return `[${texts.join(',')}]`;
}
