/** @import { View } from './app/screen.js' */
import { attachSwitches, drawFrame, drawNow } from './app/frame.js';
import { attachFinder, listenToKeys } from './app/keys.js';
import { forgetOverview, keepOverview, knownOverview, listen } from './app/live.js';
import { createScreen, parseAddress } from './app/screen.js';
import { currentSession, loginForm, Refused, signIn, signOut, Unreachable } from './app/session.js';
import { notThere } from './parts/elements.js';
import { backfills } from './views/backfills.js';
import { budget } from './views/budget.js';
import { record, run } from './views/details.js';
import { links } from './views/links.js';
import { audit, quarantine, runs, schema } from './views/lists.js';
import { stream } from './views/stream.js';
import { streams } from './views/streams.js';

/** The view for an unknown address. @type {View} */
const unknown = {
  title: () => 'Not found',
  updates: [],
  load: async () => ({}),
  draw: (_, { view }) =>
    notThere(`There is no view “${view}”`, 'Choose one above, or start with the overview.', '#/', 'Overview'),
};

/** @type {Readonly<Record<string, View>>} */
const VIEWS = { '': streams, stream, backfills, runs, run, budget, quarantine, record, schema, links, audit };

/** @param {string} id @returns {any} */
const place = (id) => document.getElementById(id);

const frame = drawFrame(place);
/** Closes the live connection, which exists only while signed in. @type {(() => void) | undefined} */
let stopListening;

const screen = createScreen(place('main'), {
  onLoaded: () => frame.heard(),
  onFault(error, isEmpty) {
    if (error instanceof Refused && error.status === 401) askForToken();
    else if (error instanceof Unreachable) frame.gone();
    else frame.fault(/** @type {Error} */ (error).message, isEmpty);
  },
});

function show() {
  const address = parseAddress(location.hash);
  frame.at(address);
  const name = address.view === 'quarantine' && address.parts[0] ? 'record' : address.view;
  void screen.show(VIEWS[name] ?? unknown, address);
}

function askForToken() {
  stopListening?.();
  stopListening = undefined;
  forgetOverview();
  frame.signed(false);
  screen.replace([loginForm(begin)]);
  place('token').focus();
}

function begin() {
  frame.signed(true);
  show();
  stopListening = listen({
    onOverview(overview) {
      keepOverview(overview);
      frame.count(overview);
      drawNow(place('now'), overview);
    },
    onReadiness: frame.ready,
    onUpdates: screen.onUpdates,
    onState: (state) => (state === 'live' ? frame.live() : frame.gone()),
    onSignedOut: askForToken,
  });
}

/** Takes the token from the link that the server prints, where it follows the `#`, and removes it from the browser's history. */
function takeToken() {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token) history.replaceState(null, '', '#/');
  return token;
}

async function start() {
  try {
    const token = takeToken();
    if (token) await signIn(token).catch(() => {}); // Recovery: the link is old; the form asks for the token.
    const { signedIn } = await currentSession({ refresh: true });
    if (signedIn) begin();
    else askForToken();
  } catch {
    // Recovery: retries until the server answers. It was up a moment ago, because it served the page.
    frame.gone();
    setTimeout(start, 2000);
  }
}

/** Durations grow, so they are redrawn even while the server sends nothing. */
setInterval(() => {
  const known = knownOverview();
  if (known && stopListening) drawNow(place('now'), known);
}, 5000);
attachSwitches(place, screen.redraw);
attachFinder(place('find-form'), place('finder'));
listenToKeys(place('finder'), () => stopListening !== undefined);
place('skip').onclick = (/** @type {Event} */ event) => {
  event.preventDefault(); // The router would take its fragment for the address of a view.
  place('main').focus();
};
place('sign-out').onclick = () => signOut().then(askForToken, frame.gone);
addEventListener('hashchange', () => stopListening && show());
void start();
