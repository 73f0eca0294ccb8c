import { h } from '../dom/h.js';

const SECONDS = 6;

/**
 * Does something, and says how it went where everybody notices: at the foot of the page, and aloud.
 * @param {string} done What to say when it went well.
 * @param {() => Promise<unknown>} act
 */
export async function announce(done, act) {
  try {
    await act();
    say(done, 'good');
  } catch (error) {
    // Recovery: nothing was changed, and whoever pressed the button reads why.
    say(/** @type {Error} */ (error).message, 'bad');
  }
}

/** @param {string} text @param {'good' | 'bad'} kind */
function say(text, kind) {
  const place = /** @type {HTMLElement} */ (document.getElementById('said'));
  const line = h('p', { class: `said ${kind}` }, text);
  place.append(line);
  setTimeout(() => line.remove(), SECONDS * 1000);
}
