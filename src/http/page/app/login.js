import { h } from '../dom/h.js';
import { signIn } from './ask.js';

/** Asks for the token, which the server turns into a session cookie; it is kept nowhere here. @param {() => void} onSignedIn */
export function loginForm(onSignedIn) {
  const fault = h('p', { class: 'trouble', role: 'alert' });
  const input = /** @type {HTMLInputElement} */ (
    h('input', { id: 'token', type: 'password', autocomplete: 'current-password', required: true })
  );
  const form = h(
    'form',
    { class: 'panel login', 'data-keep': true, 'data-key': 'login' },
    h('h1', {}, 'Sign in'),
    h('p', { class: 'muted' }, 'Use a token of the config, or the link that tributary start prints.'),
    h('div', { class: 'field' }, h('label', { for: 'token' }, 'Token'), input),
    fault,
    h('button', { class: 'main' }, 'Sign in'),
  );
  form.onsubmit = async (event) => {
    event.preventDefault();
    try {
      await signIn(input.value);
      onSignedIn();
    } catch (error) {
      // Recovery: the reason is shown, and the token can be typed again.
      fault.textContent = /** @type {Error} */ (error).message;
      input.select();
    }
  };
  return form;
}
