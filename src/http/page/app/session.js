/** @import { ApiError, Session } from '../../api-types.ts' */
import { html } from '../parts/dom.js';

/** An error response of the server; see ApiError for the meaning of `status`. */
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

/** A query with its question mark; empty values are omitted. @param {Record<string, string | number | null | undefined>} query */
export function tailOf(query) {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return set.length > 0 ? `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}` : '';
}

/**
 * @param {string} path
 * @param {Record<string, string | number | null | undefined>} [query] The server has defaults for values that are not set.
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, query = {}, signal) {
  return send('GET', `${path}${tailOf(query)}`, undefined, signal);
}

/** Like `get`, but null if the server has no such item. @param {string} path @param {AbortSignal} [signal] */
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
  const answer = await response.json().catch(() => null); // Not JSON, such as a proxy's page: only the status is used.
  if (response.ok && answer !== null) return answer;
  const { status } = response;
  throw new Refused({ status, message: `the server answered ${status}`, kept: null, next: null, ...answer?.error });
}

/** The sign-in form. The server exchanges the token for a session cookie; the page does not store it. @param {() => void} onSignedIn */
export function loginForm(onSignedIn) {
  const fault = html`<p class="trouble" role="alert"></p>`;
  const input = html`<input id="token" type="password" autocomplete="current-password" required>`;
  const onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await signIn(input.value);
      onSignedIn();
    } catch (error) {
      // Recovery: the reason is shown, and the user can enter the token again.
      fault.textContent = /** @type {Error} */ (error).message;
      input.select();
    }
  };
  return html`<form class="panel login" data-keep data-key="login" onsubmit=${onsubmit}>
    <h1>Sign in</h1>
    <p class="muted">Use a token of the config, or the link that tributary start prints.</p>
    <div class="field"><label for="token">Token</label>${input}</div>
    ${fault}
    <button class="main">Sign in</button>
  </form>`;
}
