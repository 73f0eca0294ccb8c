import { alike } from './corpus.ts';

/** The fate of a window when an answer of the corpus replaces the first page and the true page follows. */
export type AnswerTrap = { means: string } & (
  | { outcome: 'stored' }
  /** The query is retried; the log has the cause. */
  | { outcome: 'retried'; says: RegExp }
  /** Retried after the requested wait, in milliseconds; 0 is a pause of our own. */
  /** 0 if the service names no time: then the log names none either. */
  | { outcome: 'waited'; waitMs: number }
  | { outcome: 'page made smaller' }
  /** The stream stops and its cursor stays; the error has the cause. */
  | { outcome: 'stopped'; says: RegExp }
);

export const ANSWERS: Readonly<Record<string, AnswerTrap>> = {
  ...alike(
    `json-truncated body-empty no-content html-page plain-text json-trailing-comma json-nan json-single-quotes
    json-lines json-leading-zero json-raw-control-character utf-16 gzip-cut`,
    { outcome: 'retried', means: 'not JSON: asked again', says: /not JSON/ },
  ),
  // Node 20 passes on the partial body; later versions report a broken chunk.
  'chunks-cut': {
    outcome: 'retried',
    means: 'cut in the middle: asked again',
    says: /not JSON|the connection was cut/,
  },
  'gzip-garbage': { outcome: 'retried', means: 'the compressed answer is damaged: asked again', says: /damaged/ },
  'length-too-long': { outcome: 'retried', means: 'the connection was cut: asked again', says: /cut/ },
  ...alike('not-http status-line-garbage', { outcome: 'retried', means: 'not HTTP: asked again', says: /not HTTP/ }),
  'headers-of-a-megabyte': { outcome: 'retried', means: 'the request failed: asked again', says: /the request failed/ },
  ...alike(`envelope-200-internal envelope-200-unknown-code envelope-200-text`, {
    outcome: 'retried',
    means: 'an error in spite of its 200: asked again',
    says: /200 with the error/,
  }),
  'status-408': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 408/ },
  'status-500': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 500/ },
  'status-502': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 502/ },
  'status-503': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 503/ },
  'status-504': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 504/ },
  'status-529': { outcome: 'retried', means: 'passes by itself: asked again', says: /answered 529/ },
  ...alike('brotli-bomb gzip-in-gzip-bomb', {
    outcome: 'page made smaller',
    means: 'reading ends at 64 MiB; the rows come in smaller pages',
  }),
  'status-422': {
    outcome: 'page made smaller',
    means: 'one row may be to blame: smaller pages find it; if all fail, the stream stops',
  },
  '429-seconds': { outcome: 'waited', means: 'asked again after 2 s', waitMs: 2000 },
  '429-zero': { outcome: 'waited', means: 'asked again after a second, the shortest wait', waitMs: 1000 },
  '429-fraction': { outcome: 'waited', means: 'asked again after 1.5 s', waitMs: 1500 },
  ...alike('429-hour 429-millennia', {
    outcome: 'waited',
    means: 'asked again after two minutes, the longest wait',
    waitMs: 120000,
  }),
  '429-http-date': { outcome: 'waited', means: 'asked again after 7 s', waitMs: 7000 },
  '429-epoch-seconds': { outcome: 'waited', means: 'asked again after 9 s', waitMs: 9000 },
  '429-epoch-milliseconds': { outcome: 'waited', means: 'asked again after 9.5 s', waitMs: 9500 },
  ...alike('429-reset-seconds 429-reset-milliseconds', {
    outcome: 'waited',
    means: 'asked again after 4 s',
    waitMs: 4000,
  }),
  ...alike(
    `429-negative 429-past-date 429-garbage 429-digits-without-end 429-twice 429-none 429-reset-garbage
    429-limit-per-hour 429-html`,
    { outcome: 'waited', means: 'says nothing usable: asked again after a pause of our own', waitMs: 0 },
  ),
  '503-retry-after': { outcome: 'waited', means: 'asked again after 2 s', waitMs: 2000 },
  ...alike(`byte-order-mark type-html-body-json no-headers old-http date-garbage status-206 whitespace-around gzip`, {
    outcome: 'stored',
    means: 'read as it was meant',
  }),
  'latin-1': { outcome: 'stored', means: 'JSON is UTF-8: other bytes become U+FFFD' },
  ...alike('json-null json-object json-number json-text', {
    outcome: 'stopped',
    means: 'no list of events',
    says: /not a list/,
  }),
  'envelope-200-unauthorized': { outcome: 'stopped', means: 'the key is refused', says: /unauthorized/ },
  'status-400': { outcome: 'stopped', means: 'the query is refused', says: /answered 400/ },
  'status-401': { outcome: 'stopped', means: 'the key is refused', says: /answered 401/ },
  'status-401-key-echoed': { outcome: 'stopped', means: 'the key is refused, and not repeated', says: /answered 401/ },
  'status-403-permission': { outcome: 'stopped', means: 'the key may not read events', says: /answered 403/ },
  'status-403-plan': { outcome: 'stopped', means: 'the plan is too low', says: /answered 403/ },
  'status-403-usage': { outcome: 'stopped', means: 'the monthly usage is exceeded', says: /answered 403/ },
  'status-403-html': { outcome: 'stopped', means: 'something between refuses', says: /answered 403/ },
  ...alike('status-404 status-404-empty', { outcome: 'stopped', means: 'nothing there', says: /answered 404/ }),
  'status-409': { outcome: 'stopped', means: 'refused', says: /answered 409/ },
  'status-410': { outcome: 'stopped', means: 'refused', says: /answered 410/ },
  'status-418': { outcome: 'stopped', means: 'refused', says: /answered 418/ },
  ...alike(`redirect-to-another-host redirect-permanent redirect-to-nowhere redirect-to-a-file not-modified`, {
    outcome: 'stopped',
    means: 'not followed: it would get the key',
    says: /was not followed/,
  }),
};
