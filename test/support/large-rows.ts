import type { RequestListener } from 'node:http';

/** A service whose rows are large: so many a stream, a second apart, each with so many bytes of metadata. */
export interface LargeRows {
  rows: number;
  rowBytes: number;
  /** When the newest of them happened. */
  newest: number;
}

const APART_MS = 1000;

export function largeRows({ rows, rowBytes, newest }: LargeRows): RequestListener {
  const oldest = newest - (rows - 1) * APART_MS;
  return (request, response) => {
    const asked = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const [page, limit] = [Number(asked.get('page')), Number(asked.get('limit'))];
    const first = Math.max(0, Math.ceil((Date.parse(asked.get('start') ?? '') - oldest) / APART_MS));
    const last = Math.min(rows - 1, Math.ceil((Date.parse(asked.get('end') ?? '') - oldest) / APART_MS) - 1);
    const shown = Math.max(0, Math.min(limit, last - first + 1 - (page - 1) * limit));
    const isAscending = asked.get('sortOrder') === 'asc';
    response.writeHead(200, { 'content-type': 'application/json' });
    const line = Array.from({ length: shown }, (_, i) => {
      const place = (page - 1) * limit + i;
      const at = isAscending ? first + place : last - place;
      return JSON.stringify(rowOf(asked.get('event') ?? '', at, oldest + at * APART_MS, rowBytes));
    });
    response.end(`[${line.join()}]`);
  };
}

/** No two rows are alike, so that nothing that packs or compares texts has it easy. */
function rowOf(event: string, i: number, at: number, bytes: number): object {
  const word = `${event} ${i} ${((i * 2_654_435_761) % 2 ** 32).toString(36)} `;
  const text = word.repeat(Math.ceil(bytes / word.length)).slice(0, bytes);
  return {
    event: event.replace(/s$/, ''),
    timestamp: new Date(at).toISOString(),
    eventId: `${event}-${i}`,
    eventName: 'large',
    click: { id: `click-${i}` },
    customer: { id: `customer-${i}` },
    metadata: { text },
  };
}
