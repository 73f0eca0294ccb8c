/** @import { BackfillAction } from '../../api-types.ts' */
import { post, remove } from '../app/session.js';
import { html } from './dom.js';

const SECONDS = 6;

/**
 * Runs an action and shows a notice, which screen readers announce: first that it is working, then the result.
 * @param {string} done The text after success.
 * @param {() => Promise<unknown>} act
 */
export async function announce(done, act) {
  const line = html`<p class="said">Working…</p>`;
  document.getElementById('said')?.append(line);
  let [text, kind] = [done, 'good'];
  try {
    await act();
  } catch (error) {
    // Recovery: nothing was changed; the notice shows the reason.
    [text, kind] = [/** @type {Error} */ (error).message, 'bad'];
  }
  line.className = `said ${kind}`;
  line.textContent = text;
  setTimeout(() => line.remove(), SECONDS * 1000);
}

/**
 * A button for a change. It is disabled from the click to the end of its work. `data-keep` keeps live updates from enabling it
 * earlier.
 * @param {{
 *   name: string, done: string, act(): Promise<unknown>,
 *   label?: string, kind?: string, key?: string, question?: Question | false,
 * }} action `question`: asked before the action.
 */
export const actionButton = ({ name, done, act, label, kind = 'quiet', key = name, question }) => {
  /** @param {{ currentTarget: HTMLButtonElement }} event */
  const onclick = async ({ currentTarget: button }) => {
    const hadFocus = document.activeElement === button;
    for (const name of ['disabled', 'aria-busy', 'data-keep']) button.setAttribute(name, 'true');
    if (!question || (await confirmed(question))) await announce(done, act);
    for (const name of ['disabled', 'aria-busy', 'data-keep']) button.removeAttribute(name);
    // A disabled button loses the keyboard's focus.
    if (hadFocus && document.activeElement === document.body) button.focus();
  };
  return html`<button type="button" class=${kind} data-key=${key} aria-label=${label} onclick=${onclick}>${name}</button>`;
};

/**
 * @param {string} title
 * @param {unknown} content
 * @returns {Promise<string>} The value of the button that closed it; empty after Escape.
 */
export function showDialog(title, content) {
  const dialog = html`<dialog aria-labelledby="dialog-title">
    <form method="dialog"><h2 id="dialog-title">${title}</h2>${content}</form>
  </dialog>`;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      dialog.remove();
      resolve(dialog.returnValue);
    };
  });
}

/** @typedef {{ title: string, consequence: string, yes: string, name?: string }} Question */

/**
 * Asks before an irreversible change. Anything but an explicit yes, such as Escape, means no. The user types the name of what is erased,
 * so that nobody erases it by accident.
 * @param {Question} question
 */
async function confirmed({ title, consequence, yes, name }) {
  const agree = html`<button class="danger" value="yes" disabled=${name !== undefined}>${yes}</button>`;
  const oninput = (/** @type {{ target: HTMLInputElement }} */ { target }) => {
    agree.disabled = target.value.trim() !== name;
  };
  const close = (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) =>
    currentTarget.closest('dialog')?.close();
  const answer = await showDialog(title, [
    html`<p>${consequence}</p>`,
    name !== undefined &&
      html`<label>
        <span>Type ${name} to confirm</span>
        <input type="text" autocomplete="off" autofocus oninput=${oninput}>
      </label>`,
    html`<div class="row">
      <button type="button" autofocus=${name === undefined} onclick=${close}>Keep it</button>${agree}
    </div>`,
  ]);
  return answer === 'yes';
}

/** Makes streams due now; the worker runs them. @param {{ source: string, stream?: string }} of @param {string} [kind] */
export const syncNow = ({ source, stream }, kind = 'main') =>
  actionButton({
    name: 'Sync now',
    kind,
    done: `${stream ? `${source}/${stream} is` : `The streams of ${source} are`} due now`,
    act: () => post('/api/sync', { source, ...(stream && { streams: [stream] }) }),
  });

/** @type {Readonly<Record<BackfillAction, { name: string, done: string }>>} */
const ACTIONS = {
  pause: { name: 'Pause', done: 'is paused; the current page is finished first' },
  resume: { name: 'Resume', done: 'is resumed' },
  cancel: { name: 'Cancel', done: 'is cancelled; what it has read stays' },
  retry: { name: 'Retry', done: 'reads its failed windows again' },
};

/** @param {BackfillAction} action @param {{ id: string, source: string, stream: string }} backfill */
export function backfillButton(action, { id, source, stream }) {
  const what = `the backfill of ${source}/${stream}`;
  const { name, done } = ACTIONS[action];
  return actionButton({
    name,
    label: `${name} ${what}`,
    key: action === 'resume' ? 'pause' : action, // One becomes the other under the keyboard's focus.
    done: `The backfill of ${source}/${stream} ${done}.`,
    act: () => post(`/api/backfills/${encodeURIComponent(id)}/${action}`),
    question: action === 'cancel' && {
      title: `Cancel ${what}?`,
      consequence: 'This cannot be undone. What it has read is kept.',
      yes: 'Cancel the backfill',
    },
  });
}

/**
 * The actions for a record in quarantine.
 * @param {{ id: number }} record
 * @param {() => void} [onGone] Called when the record has left the quarantine.
 */
export function recordActions({ id }, onGone = () => {}) {
  const path = `/api/quarantine/${encodeURIComponent(id)}`;
  /** The button disappears with its record, so keyboard focus moves to the top of the view. */
  const leave = () => {
    document.getElementById('main')?.focus({ preventScroll: true });
    onGone();
  };
  const retry = async () => {
    const { reason } = await post(`${path}/retry`);
    if (reason !== null) throw new Error(`Record ${id} stays: ${reason}`);
    leave();
  };
  const question = {
    title: `Drop record ${id}?`,
    consequence: 'This cannot be undone: no other copy is kept here.',
    yes: 'Drop the record',
    name: String(id),
  };
  const drop = () => remove(path).then(leave);
  return html`<span class="row">
    ${actionButton({ name: 'Retry', label: `Retry record ${id}`, done: `Record ${id} was written to every sink.`, act: retry })}
    ${actionButton({ name: 'Drop', label: `Drop record ${id}`, done: `Record ${id} was dropped.`, act: drop, question })}
  </span>`;
}
