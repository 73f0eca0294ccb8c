/** @import { StreamName } from '../../../model/streams.ts' */
/** @import { Verification } from '../../api-types.ts' */
import { post } from '../app/session.js';
import { h } from '../dom/h.js';
import { announce } from '../parts/actions.js';
import { dateField, field } from '../parts/elements.js';
import { DAY_MS, dayOf } from '../words/time.js';
import { verdict } from './verdict.js';

const FORMATS = { csv: 'CSV', ndjson: 'NDJSON', parquet: 'Parquet' };

/**
 * What can be asked of the service for some days of a stream: whether the sinks hold the same, and the days as a file.
 * @param {{ source: string, stream: StreamName }} of
 * @param {Verification | null} verification The last one of this stream.
 */
export const rangePanel = (of, verification) =>
  h(
    'section',
    { class: 'panel', 'aria-labelledby': 'range-title' },
    h(
      'div',
      { class: 'panel-head' },
      h('h2', { id: 'range-title' }, 'Verify or export'),
      h('span', { class: 'small muted' }, 'Both read from the service; syncs go first.'),
    ),
    form(of),
    verification && verdict(of, verification),
  );

/** It looks after itself: news do not take away what somebody is typing. @param {{ source: string, stream: StreamName }} of */
function form({ source, stream }) {
  const form = /** @type {HTMLFormElement} */ (
    h(
      'form',
      { 'data-keep': true, 'data-key': `range ${source}/${stream}` },
      h(
        'div',
        { class: 'fields' },
        dateField('from', 'From (UTC)', dayOf(Date.now() - 7 * DAY_MS)),
        dateField('to', 'To, exclusive (UTC)', dayOf(Date.now() + DAY_MS)),
        h('button', { value: 'verify' }, 'Verify'),
        field(
          'format',
          'File',
          h(
            'select',
            { id: 'format', name: 'format' },
            Object.entries(FORMATS).map(([value, name]) => h('option', { value }, name)),
          ),
        ),
        h('button', { value: 'export' }, 'Export'),
      ),
    )
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    const [from, to, format] = ['from', 'to', 'format'].map((name) => String(new FormData(form).get(name)));
    const isExport = /** @type {HTMLButtonElement} */ (event.submitter).value === 'export';
    void announce(isExport ? 'The export is on its way.' : `${source}/${stream} is being verified.`, async () => {
      if (!from || !to || from >= to) throw new Error('From must be before To.');
      if (isExport) download(`api/export/${stream}?${new URLSearchParams({ source, from, to, format: format ?? '' })}`);
      else await post('/api/verifications', { source, streams: [stream], from, to });
    });
  };
  return form;
}

/** The browser takes it from here, as with any link to a file. @param {string} href */
function download(href) {
  const link = /** @type {HTMLAnchorElement} */ (h('a', { href, download: true }));
  link.click();
}
