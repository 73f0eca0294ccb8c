import { stringifyJson } from '../model/json.ts';
import { reshape } from './reshape.ts';
import { type Read, type Reading, readEvent } from './shape.ts';
import type { StoredEvent } from './types.ts';

/** One event as the API gives it now: link and customer joined at this moment, traits applied. */
export function render(event: StoredEvent, reading: Reading): Read {
  return event.raw ? structuredClone(event.raw) : reshape(readEvent(event, reading), event, reading.traits);
}

export interface Rendering {
  bytes(event: StoredEvent): number;
  /** The text of the page. */
  page(events: readonly StoredEvent[]): string;
}

/** The texts of one answer. Each is made once, whether it is weighed or written. */
export function createRendering(reading: Reading): Rendering {
  const texts = new Map<StoredEvent, string>();
  const text = (event: StoredEvent): string => {
    const known = texts.get(event);
    if (known !== undefined) return known;
    // Only records that were handed in can hold integers that JSON.stringify refuses.
    const made = event.raw ? stringifyJson(event.raw) : JSON.stringify(render(event, reading));
    texts.set(event, made);
    return made;
  };
  return {
    bytes: (event) => Buffer.byteLength(text(event)),
    page: (events) => `[${events.map(text).join(',')}]`,
  };
}
