/** @import { Update } from './live.js' */
import { html, morphChildren } from '../parts/dom.js';
import { tailOf } from './session.js';

/**
 * A view loads data for an address, and draws nodes from the data.
 * @typedef {{
 *   title(address: Address): string,
 *   updates: readonly Update[],
 *   load(address: Address, signal: AbortSignal): Promise<any>,
 *   draw(data: any, address: Address): unknown[],
 * }} View
 */

/** Updates come in bursts; one reload is enough for each burst. */
const SETTLE_MS = 400;
/** A stream's lag grows without any update from the server. */
const REDRAW_MS = 10_000;

/**
 * Shows one view at a time and keeps it up to date.
 * @param {HTMLElement} main
 * @param {{ onLoaded(): void, onFault(error: unknown, isEmpty: boolean): void }} listener
 */
export function createScreen(main, { onLoaded, onFault }) {
  /** @type {{ view: View, address: Address, data: unknown } | undefined} */
  let shown;
  /** The last requested view. An update must not bring back a view that was left. @type {{ view: View, address: Address } | undefined} */
  let wanted;
  let loading = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  let isLoading = false;
  /** Whether an update arrived during a load, or while the page was hidden. */
  let isStale = false;

  function draw() {
    if (shown) morphChildren(main, shown.view.draw(shown.data, shown.address));
  }

  /** @param {View} view @param {Address} address @param {{ quietly?: boolean }} [options] */
  async function show(view, address, { quietly = false } = {}) {
    wanted = { view, address };
    isLoading = true;
    isStale = false;
    loading.abort();
    loading = new AbortController();
    const { signal } = loading;
    const isElsewhere = shown?.view !== view || shown.address.parts.join('/') !== address.parts.join('/');
    if (!quietly) main.setAttribute('aria-busy', 'true');
    try {
      const data = await view.load(address, signal);
      if (signal.aborted) return;
      const isFirst = shown === undefined;
      shown = { view, address, data };
      document.title = `${view.title(address)} · Tributary`;
      draw();
      onLoaded();
      if (!isElsewhere || isFirst) return;
      // A new view starts at its top, on screen and for screen readers.
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    } catch (error) {
      if (signal.aborted) return;
      if (isElsewhere) {
        shown = undefined;
        morphChildren(main, [html`<h1>${view.title(address)}</h1>`]);
      }
      onFault(error, isElsewhere);
    } finally {
      if (!signal.aborted) {
        main.removeAttribute('aria-busy');
        isLoading = false;
        catchUp();
      }
    }
  }

  function refresh() {
    clearTimeout(soon);
    soon = undefined;
    // A running load is not aborted for newer updates: if they come fast, none would ever finish.
    isStale = document.hidden || isLoading;
    if (wanted && !isStale) void show(wanted.view, wanted.address, { quietly: true });
  }

  function catchUp() {
    if (isStale && !document.hidden && !isLoading) soon ??= setTimeout(refresh, SETTLE_MS);
  }

  setInterval(() => {
    if (!document.hidden) draw();
  }, REDRAW_MS);
  document.addEventListener('visibilitychange', catchUp);

  return {
    show,
    redraw: draw,
    /** @param {readonly Update[]} updates */
    onUpdates(updates) {
      const isOurs =
        wanted && (updates.includes('everything') || wanted.view.updates.some((each) => updates.includes(each)));
      if (isOurs) soon ??= setTimeout(refresh, SETTLE_MS);
    },
    /** Replaces everything shown, because it is only for users who are signed in. @param {Node[]} nodes */
    replace(nodes) {
      loading.abort();
      clearTimeout(soon);
      soon = undefined;
      shown = undefined;
      wanted = undefined;
      isLoading = false;
      main.removeAttribute('aria-busy');
      morphChildren(main, nodes);
    },
  };
}

/**
 * The address contains the whole state of a view, so it can be bookmarked, shared, and left with the back button.
 * `#/stream/main/clicks?zoom=year` is the view `stream`, the parts `main` and `clicks`, and a query.
 * @typedef {{ view: string, parts: string[], query: Record<string, string> }} Address
 */

/** @param {string} hash @returns {Address} */
export function parseAddress(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view = '', ...parts] = path.split('/').map(decoded);
  return { view, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * @param {readonly (string | number)[]} path
 * @param {Record<string, string | number | null | undefined>} [query] Empty values are omitted.
 */
export const href = (path, query = {}) => `#/${path.map(encodeURIComponent).join('/')}${tailOf(query)}`;

/** The same view with another query. @param {Address} address @param {Record<string, string | number | null>} changes */
export const here = ({ view, parts, query }, changes) => href([view, ...parts], { ...query, ...changes });

/** Decodes percent escapes, but returns malformed text unchanged. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
