/** @import { Overview, TopLinks } from '../../api-types.ts' */
import { announce, showDialog } from '../parts/actions.js';
import { html } from '../parts/dom.js';
import { knownOverview } from './live.js';
import { href } from './screen.js';
import { get, getIfThere } from './session.js';

/** The targets of the keys after `g`. @type {Readonly<Record<string, readonly [hash: string, name: string]>>} */
const PLACES = {
  o: ['#/', 'Overview'],
  b: ['#/backfills', 'Backfills'],
  r: ['#/runs', 'Runs'],
  d: ['#/links', 'Data'],
  s: ['#/budget', 'Settings'],
};

/** How long `g` waits for the next key. */
const WAIT_MS = 1500;

/** Keyboard shortcuts of the whole page, except in input fields. @param {HTMLInputElement} finder @param {() => boolean} isSignedIn */
export function listenToKeys(finder, isSignedIn) {
  let since = Number.NEGATIVE_INFINITY;
  addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    const isTyping = target instanceof HTMLElement && target.closest('input, select, textarea, dialog') !== null;
    if (isTyping || ctrlKey || metaKey || altKey || !isSignedIn()) return;
    const place = performance.now() - since < WAIT_MS ? PLACES[key] : undefined;
    since = key === 'g' ? performance.now() : Number.NEGATIVE_INFINITY;
    if (place) location.hash = place[0];
    else if (key === '/') finder.focus();
    else if (key === '?') showSheet();
    else return;
    event.preventDefault();
  });
}

function showSheet() {
  const keys = [
    ['/', 'find a stream, run, record or link'],
    ...Object.entries(PLACES).map(([key, [, name]]) => [`g ${key}`, `go to ${name}`]),
    ['?', 'this list'],
  ];
  void showDialog('Keyboard', [
    html`<dl class="keys">${keys.map(([key, does]) => [html`<dt><kbd>${key}</kbd></dt>`, html`<dd>${does}</dd>`])}</dl>`,
    html`<button autofocus>Close</button>`,
  ]);
}

/** The search field, which finds things by name or id. @param {HTMLFormElement} form @param {HTMLInputElement} finder */
export function attachFinder(form, finder) {
  const list = html`<datalist id="known"></datalist>`;
  form.append(list);
  finder.onfocus = () => {
    const names = knownOverview()?.streams.map(({ source, stream }) => `${source}/${stream}`) ?? [];
    list.replaceChildren(...names.map((value) => html`<option value=${value}></option>`));
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    const text = finder.value.trim();
    if (text === '') return;
    const found = await find(text);
    if (found === null)
      return announce('', () => Promise.reject(new Error(`There is no stream, run, record or link “${text}”.`)));
    finder.value = '';
    finder.blur();
    location.hash = found;
  };
}

/** The address of the stream, run, record or link with this name or id, or null. @param {string} text @returns {Promise<string | null>} */
async function find(text) {
  const stream = streamOf(text, knownOverview());
  if (stream) return stream;
  const id = encodeURIComponent(text);
  if (/^\d{1,15}$/.test(text) && (await getIfThere(`/api/quarantine/${id}`))) return href(['quarantine', text]);
  if (/^[\w-]{8,}$/.test(text) && (await getIfThere(`/api/runs/${id}`))) return href(['run', text]);
  const { links } = /** @type {TopLinks} */ (await get('/api/links/top', { q: text.slice(0, 200), limit: 1 }));
  if (links.length > 0) return href(['links'], { q: text });
  return null;
}

/** Finds `main/clicks`, or `clicks` if only one source has it. @param {string} text @param {Overview | undefined} overview */
function streamOf(text, overview) {
  const wanted = text.toLowerCase();
  const found = (overview?.streams ?? []).filter(
    ({ source, stream }) => `${source}/${stream}`.toLowerCase() === wanted || stream === wanted,
  );
  const [one] = found;
  return one && found.length === 1 ? href(['stream', one.source, one.stream]) : null;
}
