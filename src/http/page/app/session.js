/** @import { ApiError, Session } from '../../api-types.ts' */
import { h } from '../parts/dom.js';

/** An error answer of the server; see ApiError for the meaning of `status`. */
export class Refused extends Error {
  /** @param {ApiError['error']} error */
  constructor({ status, message, kept, next }) {
    super([message, kept, next].filter(Boolean).join('; '));
    this.status = status;
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

/** @type {Session | undefined} */
let session;

/** The session, loaded once, and again when it may have changed. */
export async function currentSession({ refresh = false } = {}) {
  if (!session || refresh) session = /** @type {Session} */ (await send('GET', '/api/session'));
  return session;
}

/** @param {string} token */
export async function signIn(token) {
  session = /** @type {Session} */ (await send('POST', '/api/session', { token }));
}

export async function signOut() {
  await change('DELETE', '/api/session');
  session = undefined;
}

/**
 * @param {string} path
 * @param {Record<string, string | number | null | undefined>} [query] What is not set is left to the server.
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, query = {}, signal) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') params.set(name, String(value));
  }
  return send('GET', params.size > 0 ? `${path}?${params}` : path, undefined, signal);
}

/** Null if there is no such thing. @param {string} path @param {AbortSignal} [signal] */
export const getIfThere = (path, signal) =>
  get(path, {}, signal).catch((error) => {
    if (error instanceof Refused && [400, 404].includes(error.status)) return null;
    throw error;
  });

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] */
export const post = (path, body = {}, signal) => change('POST', path, body, signal);

/** @param {string} path */
export const remove = (path) => change('DELETE', path);

/**
 * Sends a change. The CSRF token may be out of date after a restart of the server, so a refusal is retried once with a new one.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 */
async function change(method, path, body, signal) {
  await currentSession();
  try {
    return await send(method, path, body, signal);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 403) throw error;
    await currentSession({ refresh: true });
    return send(method, path, body, signal);
  }
}

/**
 * URLs are relative to the page, because a proxy may serve it under any path.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function send(method, path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { accept: 'application/json' };
  if (body) headers['content-type'] = 'application/json';
  if (method !== 'GET' && session?.csrf) headers['x-csrf-token'] = session.csrf;
  const response = await fetch(path.slice(1), {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error) => {
    throw signal?.aborted ? error : new Unreachable('the server does not answer', { cause: error });
  });
  if (response.status === 204) return undefined;
  const answer = await response.json().catch(() => null); // Not JSON, perhaps a proxy's page: the status must do.
  if (response.ok && answer !== null) return answer;
  const { status } = response;
  throw new Refused({ status, message: `the server answered ${status}`, kept: null, next: null, ...answer?.error });
}

/** The sign-in form. The server exchanges the token for a session cookie; the page does not store it. @param {() => void} onSignedIn */
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
