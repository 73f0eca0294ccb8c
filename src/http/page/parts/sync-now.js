/** @import { StreamName } from '../../../model/streams.ts' */
import { post } from '../app/ask.js';
import { h } from '../dom/h.js';
import { announce } from './announce.js';

/** Makes a stream due now; the worker takes it up. @param {{ source: string, stream: StreamName }} of */
export const syncNow = ({ source, stream }) =>
  h(
    'p',
    {},
    h(
      'button',
      {
        type: 'button',
        onclick: () =>
          announce(`${source}/${stream} is due now`, () => post('/api/sync', { source, streams: [stream] })),
      },
      'Sync now',
    ),
  );
