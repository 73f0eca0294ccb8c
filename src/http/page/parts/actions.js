/** @import { StreamName } from '../../../model/streams.ts' */
import { post, remove } from '../app/session.js';
import { h } from './dom.js';

const SECONDS = 6;

/**
 * Runs an action; a notice, which screen readers announce, says so at once and becomes the result.
 * @param {string} done What to say when it went well.
 * @param {() => Promise<unknown>} act
 */
export async function announce(done, act) {
  const become = say('Working…');
  try {
    await act();
    become(done, 'good');
  } catch (error) {
    // Recovery: nothing was changed; the notice shows the reason.
    become(/** @type {Error} */ (error).message, 'bad');
  }
}

/**
 * A button that is disabled from the click to the end of what it does. A live update must not bring it back in between, so the page
 * leaves it alone until then.
 * @param {Record<string, unknown>} props
 * @param {string} name
 * @param {() => Promise<unknown>} act
 */
export const actionButton = (props, name, act) =>
  h(
    'button',
    {
      type: 'button',
      ...props,
      onclick: async (/** @type {{ currentTarget: HTMLButtonElement }} */ { currentTarget: button }) => {
        const hadFocus = document.activeElement === button;
        button.disabled = true;
        button.setAttribute('aria-busy', 'true');
        button.setAttribute('data-keep', '');
        await act();
        for (const name of ['disabled', 'aria-busy', 'data-keep']) button.removeAttribute(name);
        // A disabled button loses the keyboard's focus.
        if (hadFocus && document.activeElement === document.body) button.focus();
      },
    },
    name,
  );

/** @param {string} text @returns {(text: string, kind: 'good' | 'bad') => void} */
function say(text) {
  const line = h('p', { class: 'said' }, text);
  document.getElementById('said')?.append(line);
  return (result, kind) => {
    line.className = `said ${kind}`;
    line.textContent = result;
    setTimeout(() => line.remove(), SECONDS * 1000);
  };
}

/**
 * Asks before something that cannot be undone. Escape, and anything but an explicit yes, is no.
 * @param {string} question
 * @param {string} consequence
 * @param {string} yes
 * @param {string} [name] Of what is erased: it is typed again, so that nobody erases by a slip.
 * @returns {Promise<boolean>}
 */
export function confirmed(question, consequence, yes, name) {
  const agree = /** @type {HTMLButtonElement} */ (
    h('button', { class: 'danger', value: 'yes', disabled: name !== undefined }, yes)
  );
  const typing = {
    oninput(/** @type {{ target: HTMLInputElement }} */ { target }) {
      agree.disabled = target.value.trim() !== name;
    },
    // Enter would press the first button, which cancels.
    onkeydown(/** @type {KeyboardEvent} */ event) {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      agree.click();
    },
  };
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      'dialog',
      { 'aria-labelledby': 'question' },
      h(
        'form',
        { method: 'dialog' },
        h('h2', { id: 'question' }, question),
        h('p', {}, consequence),
        name !== undefined &&
          h(
            'label',
            {},
            h('span', {}, `Type ${name} to confirm`),
            h('input', { type: 'text', autocomplete: 'off', autofocus: true, ...typing }),
          ),
        h('div', { class: 'row' }, h('button', { value: 'no', autofocus: name === undefined }, 'Keep it'), agree),
      ),
    )
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    };
  });
}

/** Makes streams due now; the worker runs them. @param {{ source: string, stream?: StreamName }} of @param {Record<string, unknown>} [props] */
export const syncNow = ({ source, stream }, props = { class: 'main' }) =>
  actionButton(props, 'Sync now', () =>
    announce(`${stream ? `${source}/${stream} is` : `The streams of ${source} are`} due now`, () =>
      post('/api/sync', { source, ...(stream && { streams: [stream] }) }),
    ),
  );

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
    const consequence = 'This cannot be undone: no other copy is kept here.';
    if (!(await confirmed(`Drop record ${id}?`, consequence, 'Drop the record', String(id)))) return;
    await announce(`Record ${id} was dropped.`, async () => {
      await remove(path);
      leave();
    });
  };
  /** The button disappears with its record, so keyboard focus moves to the top of the view. */
  const leave = () => {
    document.getElementById('main')?.focus({ preventScroll: true });
    onGone();
  };
  return h('span', { class: 'row' }, button('Retry', id, retry), button('Drop', id, drop));
}

/** @param {string} name @param {number} id @param {() => Promise<void>} act */
const button = (name, id, act) =>
  actionButton({ class: 'quiet', 'data-key': name, 'aria-label': `${name} record ${id}` }, name, act);
