import { h } from '../dom/h.js';

/**
 * Asks before something that cannot be taken back. Escape, and anything but a clear yes, is no.
 * @param {string} question
 * @param {string} consequence
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
export function confirmed(question, consequence, yes) {
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      'dialog',
      { 'aria-labelledby': 'question' },
      h(
        'form',
        { method: 'dialog' },
        h('h2', { id: 'question' }, question),
        h('p', {}, consequence),
        h(
          'div',
          { class: 'row' },
          h('button', { class: 'main', value: 'yes' }, yes),
          h('button', { value: 'no' }, 'Keep it'),
        ),
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
