/** @import { Overview, Readiness } from '../../api-types.ts' */
/** @import { Address } from './screen.js' */
import { h } from '../parts/dom.js';
import { minute } from '../parts/words.js';

/** Which of the ways a view belongs to. @type {Readonly<Record<string, string>>} */
const WAYS = { stream: '', run: 'runs' };

/**
 * What stands around every view: where we are, whether the server is there, and what is wrong with it.
 * @param {(id: string) => HTMLElement} place
 */
export function drawFrame(place) {
  const [ways, live, notices] = [place('ways'), place('live'), place('notices')];
  let heardAt = new Date();
  /** What there is to say, by what it is about: each once. @type {Map<'server' | 'fault' | 'parts', string>} */
  const said = new Map();

  function draw() {
    notices.replaceChildren(...[...said.values()].map((text) => h('div', { class: 'notice' }, h('p', {}, text))));
  }

  /** @param {'server' | 'fault' | 'parts'} about @param {string} [text] */
  function say(about, text) {
    if (said.get(about) === text) return; // Said already: a screen reader shall not say it again.
    if (text) said.set(about, text);
    else said.delete(about);
    draw();
  }

  /** @param {'live' | 'waiting' | 'away'} state @param {string} text */
  function mark(state, text) {
    live.dataset.state = state;
    live.textContent = text;
  }

  return {
    /** @param {Address} address */
    at({ view }) {
      const here = `#/${WAYS[view] ?? view}`;
      for (const way of ways.querySelectorAll('a')) {
        if (way.getAttribute('href') === here) way.setAttribute('aria-current', 'page');
        else way.removeAttribute('aria-current');
      }
    },
    /** The server answered. */
    heard() {
      heardAt = new Date();
      say('server');
      say('fault');
    },
    /** News come by themselves. */
    live() {
      mark('live', 'Live');
      say('server');
    },
    gone() {
      // As long as news came, what is shown was up to date.
      if (live.dataset.state === 'live') heardAt = new Date();
      const since = minute(heardAt.toISOString());
      mark('waiting', 'Waiting');
      say(
        'server',
        `The server does not answer. What you see is from ${since} UTC; it goes on by itself once the server is back.`,
      );
    },
    /** @param {string} message @param {boolean} isEmpty */
    fault(message, isEmpty) {
      say('fault', isEmpty ? message : `${message}. What you see is from ${minute(heardAt.toISOString())} UTC.`);
    },
    /** @param {Readiness} readiness */
    ready({ parts }) {
      const away = parts.filter(({ ok }) => !ok);
      if (away.length > 0)
        mark('away', `${away.map(({ part }) => (part === 'state' ? 'Postgres' : 'Queue')).join(' and ')} away`);
      else mark('live', 'Live');
      const names = away.map(({ part, message }) => (message ? `${part} (${message})` : part)).join(' and the ');
      say('parts', names && `Away: the ${names}. Nothing is lost; work goes on by itself once it is back.`);
    },
    /** @param {Overview} overview */
    count({ streams }) {
      const quarantined = streams.reduce((sum, stream) => sum + stream.quarantined, 0);
      const count = place('quarantined');
      count.textContent = String(quarantined);
      count.hidden = quarantined === 0;
    },
    signedIn() {
      ways.hidden = false;
      live.hidden = false;
      place('sign-out').hidden = false;
    },
    signedOut() {
      said.clear();
      draw();
      place('said').replaceChildren();
      ways.hidden = true;
      live.hidden = true;
      place('sign-out').hidden = true;
      document.title = 'Sign in · Tributary';
    },
  };
}

const THEMES = ['auto', 'light', 'dark'];

/** Light or dark as the system says, unless somebody chose; the choice stays in this browser. @param {HTMLButtonElement} button */
export function attachThemeSwitch(button) {
  const root = document.documentElement;
  const name = () => {
    button.textContent = `Theme: ${root.dataset.theme}`;
  };
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'auto') + 1) % THEMES.length] ?? 'auto';
    root.dataset.theme = next;
    localStorage.setItem('theme', next);
    name();
  };
  name();
}
