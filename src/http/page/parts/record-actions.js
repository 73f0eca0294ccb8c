import { post, remove } from '../app/ask.js';
import { h } from '../dom/h.js';
import { announce } from './announce.js';
import { confirmed } from './confirm.js';

/**
 * What can be done with a record that was set aside.
 * @param {{ id: number }} record
 * @param {() => void} [onGone] It is in quarantine no more.
 */
export function recordActions({ id }, onGone = () => {}) {
  const path = `/api/quarantine/${encodeURIComponent(id)}`;
  const retry = () =>
    announce(`Record ${id} was written into every sink.`, async () => {
      const { reason } = await post(`${path}/retry`);
      if (reason !== null) throw new Error(`Record ${id} stays: ${reason}`);
      leave();
    });
  const drop = async () => {
    if (!(await confirmed(`Drop record ${id}?`, 'For good: it is not kept anywhere else here.', 'Drop the record')))
      return;
    await announce(`Record ${id} was dropped.`, async () => {
      await remove(path);
      leave();
    });
  };
  /** The button goes with its record: who uses the keyboard goes on at the top of the view. */
  const leave = () => {
    document.getElementById('main')?.focus({ preventScroll: true });
    onGone();
  };
  return h('span', { class: 'row' }, button('Retry', id, retry), button('Drop', id, drop));
}

/** @param {string} name @param {number} id @param {() => void} onclick */
const button = (name, id, onclick) =>
  h(
    'button',
    { type: 'button', class: 'quiet', 'data-key': name, 'aria-label': `${name} record ${id}`, onclick },
    name,
  );
