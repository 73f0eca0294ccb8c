/** @import { Activity, Overview, Readiness } from '../../api-types.ts' */
/** @import { Address } from './screen.js' */

import { backfillButton } from '../parts/actions.js';
import { html, morphChildren } from '../parts/dom.js';
import { aside, progressBar } from '../parts/elements.js';
import { nameOf } from '../parts/tables.js';
import { duration, figure, minute, percent, since, switchZone, zoneName } from '../parts/words.js';
import { href } from './screen.js';

/** The navigation entry of views that have none of their own. @type {Readonly<Record<string, string>>} */
const PARENTS = { stream: '', run: 'runs', quarantine: 'links', schema: 'links', audit: 'budget' };

/** The views of one navigation entry, by its address. @type {Readonly<Record<string, readonly (readonly [string, string])[]>>} */
const PARTS = {
  '#/links': [
    ['#/links', 'Links'],
    ['#/quarantine', 'Quarantine'],
    ['#/schema', 'Schema'],
  ],
  '#/budget': [
    ['#/budget', 'Budget'],
    ['#/audit', 'Audit'],
    ['queues', 'Queues'],
  ],
};

/**
 * The frame around every view: navigation, connection state and problems.
 * @param {(id: string) => HTMLElement} place
 */
export function drawFrame(place) {
  const [ways, live, notices] = [place('ways'), place('live'), place('notices')];
  let heardAt = new Date();
  /** The notices, one for each topic. @type {Map<'server' | 'fault' | 'parts', string>} */
  const said = new Map();

  /** @param {'server' | 'fault' | 'parts'} about @param {string} [text] */
  function say(about, text) {
    if (text) said.set(about, text);
    else said.delete(about);
    // Notices that are already shown stay unchanged, so that a screen reader does not repeat them.
    morphChildren(
      notices,
      [...said].map(([key, text]) => html`<div class="notice" data-key=${key}><p>${text}</p></div>`),
    );
  }

  /** @param {'live' | 'waiting' | 'away'} state @param {string} text */
  function mark(state, text) {
    live.dataset.state = state;
    live.textContent = text;
  }

  return {
    /** @param {Address} address */
    at({ view }) {
      const here = `#/${PARENTS[view] ?? view}`;
      for (const way of ways.querySelectorAll('a')) {
        if (way.getAttribute('href') === here) way.setAttribute('aria-current', 'page');
        else way.removeAttribute('aria-current');
      }
      const parts = PARTS[here] ?? [];
      place('parts').hidden = parts.length === 0;
      morphChildren(
        place('parts'),
        parts.map(
          ([to, name]) => html`<a href=${to} data-key=${to} aria-current=${to === `#/${view}` && 'page'}>${name}</a>`,
        ),
      );
    },
    heard() {
      heardAt = new Date();
      say('server');
      say('fault');
    },
    live() {
      mark('live', 'Live');
      say('server');
    },
    gone() {
      // While the connection was live, the data shown was up to date.
      if (live.dataset.state === 'live') heardAt = new Date();
      const since = minute(heardAt.toISOString());
      mark('waiting', 'Waiting');
      say(
        'server',
        `The server does not answer. The data shown is from ${since} (${zoneName()}); the page resumes when the server is back.`,
      );
    },
    /** @param {string} message @param {boolean} isEmpty */
    fault(message, isEmpty) {
      say(
        'fault',
        isEmpty ? message : `${message}. The data shown is from ${minute(heardAt.toISOString())} (${zoneName()}).`,
      );
    },
    /** @param {Readiness} readiness */
    ready({ parts }) {
      const away = parts.filter(({ ok }) => !ok);
      if (away.length > 0)
        mark('away', `${away.map(({ part }) => (part === 'state' ? 'Postgres' : 'Queue')).join(' and ')} away`);
      else mark('live', 'Live');
      const names = away.map(({ part, message }) => (message ? `${part} (${message})` : part)).join(' and the ');
      say('parts', names && `Not available: the ${names}. Nothing is lost; work resumes when the connection is back.`);
    },
    /** @param {Overview} overview */
    count({ streams }) {
      const quarantined = streams.reduce((sum, stream) => sum + stream.quarantined, 0);
      const count = place('quarantined');
      count.textContent = String(quarantined);
      count.hidden = quarantined === 0;
    },
    /** @param {boolean} isIn */
    signed(isIn) {
      for (const id of ['ways', 'live', 'find', 'sign-out']) place(id).hidden = !isIn;
      if (isIn) return;
      said.clear();
      for (const id of ['notices', 'now', 'said']) place(id).replaceChildren();
      place('now').hidden = true;
      place('parts').hidden = true;
      document.title = 'Sign in · Tributary';
    },
  };
}

/** @type {Readonly<Record<string, string>>} */
const NEXT_THEME = { auto: 'light', light: 'dark', dark: 'auto' };

/**
 * Switches for the theme (as in the system, light or dark) and for times (UTC or local). The choices are stored in this browser.
 * @param {(id: string) => HTMLElement} place
 * @param {() => void} redraw
 */
export function attachSwitches(place, redraw) {
  const [theme, zone, { dataset }] = [place('theme'), place('zone'), document.documentElement];
  const name = () => {
    theme.textContent = `Theme: ${dataset.theme}`;
    zone.textContent = zoneName() === 'UTC' ? 'UTC' : 'Local';
    zone.setAttribute('aria-label', `Times are ${zoneName()}; switch`);
  };
  theme.onclick = () => {
    dataset.theme = localStorage.theme = NEXT_THEME[dataset.theme ?? ''] ?? 'auto';
    name();
  };
  zone.onclick = () => {
    switchZone();
    name();
    redraw();
  };
  name();
}

/** Limits the list, so that the view itself stays visible however many backfills wait. */
const SHOWN = 4;

/** The running syncs and backfills, above every view. @param {HTMLElement} place @param {Overview} overview */
export function drawNow(place, { activities }) {
  place.hidden = activities.length === 0;
  const rows = activities.slice(0, SHOWN).map(row);
  const more = activities.length - rows.length;
  if (more > 0) rows.push(html`<li data-key="more"><a href="#/backfills">and ${more} more</a></li>`);
  morphChildren(place, [html`<h2 class="small">Now</h2>`, html`<ul>${rows}</ul>`]);
}

/** @param {Activity} activity */
function row(activity) {
  const { kind, id, startedAt, progress, rows, rowsPerSecond, etaSeconds, paused } = activity;
  const name = nameOf(activity);
  const isBackfill = kind === 'backfill';
  const figures = [
    progress === null ? since(startedAt) : percent(progress),
    rows !== null && rows > 0 && `${figure(rows)} rows`,
    rowsPerSecond !== null && rowsPerSecond > 0 && !paused && `${figure(rowsPerSecond)} rows/s`,
    etaSeconds !== null && !paused && `about ${duration(etaSeconds)} left`,
  ].filter(Boolean);
  const title = `${paused ? 'Paused: ' : ''}${isBackfill ? 'Backfill' : 'Sync'} of ${name}`;
  return html`<li class="row" data-key=${id}>
    <a href=${isBackfill ? '#/backfills' : href(['run', id])}>${title}</a>
    ${progress !== null && progressBar(`${kind} of ${name}`, progress)}
    ${aside(figures.join(' · '))}
    ${isBackfill && backfillButton(paused ? 'resume' : 'pause', activity)}
  </li>`;
}
