import { html } from './dom.js';

export const STREAMS = /** @type {const} */ (['clicks', 'leads', 'sales']);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,345` @param {number} n */
export const figure = (n) => whole.format(n);

/** `12.3K`, for axes and narrow places. @param {number} n */
export const shortFigure = (n) => short.format(n);

/** A count and its noun: `1 row`, `2 rows`. @param {number} n @param {string} noun */
export const counted = (n, noun) => `${figure(n)} ${noun}${n === 1 ? '' : 's'}`;

/** A percentage; nearly zero is not shown as 0, nor nearly all as 100. @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.01) return '< 1%';
  if (share < 1 && share > 0.99) return '> 99%';
  return `${Math.round(share * 100)}%`;
}

/** `45 s`, `12 min`, `3 h 20 min`, `2 days 4 h`: as on the command line. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return '< 1 s';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${hours / 24} days` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

/** Capitalized, for titles. @param {string} word */
export const titled = (word) => `${word[0]?.toUpperCase() ?? ''}${word.slice(1)}`;

/** Times are UTC, as in the tables, unless the viewer chose local time; the tooltip shows both. */

/** @type {'UTC' | 'local time'} */
let zone = localStorage.getItem('zone') === 'local' ? 'local time' : 'UTC';

export const zoneName = () => zone;

export function switchZone() {
  zone = zone === 'UTC' ? 'local time' : 'UTC';
  localStorage.setItem('zone', zone === 'UTC' ? 'UTC' : 'local');
}

/** In the time zone of the page. @param {string} iso */
const onClock = (iso) =>
  zone === 'UTC' ? iso : new Date(Date.parse(iso) - new Date(iso).getTimezoneOffset() * 60_000).toISOString();

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const fullDay = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });
const month = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const monthName = new Intl.DateTimeFormat('en', { month: 'short', timeZone: 'UTC' });

export const DAY_MS = 86_400_000;

/** `2026-11-15 04:20` @param {string} iso */
export const minute = (iso) => onClock(iso).slice(0, 16).replace('T', ' ');

/** `2026-11-15 04:20:07` @param {string} iso */
export const second = (iso) => onClock(iso).slice(0, 19).replace('T', ' ');

/** Only the day if the time is midnight. @param {string} iso */
const dayOrMinute = (iso) => (onClock(iso).slice(11, 19) === '00:00:00' ? onClock(iso).slice(0, 10) : minute(iso));

/** A range, in the format used everywhere. @param {string} from @param {string} to */
export const range = (from, to) => `${dayOrMinute(from)} to ${dayOrMinute(to)} (exclusive)`;

/** `2026-11-15` @param {Date | number | string} at */
export const dayOf = (at) => new Date(at).toISOString().slice(0, 10);

/** @param {number} days */
export const daysAgo = (days) => dayOf(Date.now() - days * DAY_MS);

/** `2026-11` @param {Date | number | string} at */
export const monthOf = (at) => new Date(at).toISOString().slice(0, 7);

/** `Sunday 15 November 2026` @param {string} day */
export const spokenDay = (day) => fullDay.format(new Date(day));

/** `November 2026` @param {string} at `2026-11` */
export const spokenMonth = (at) => month.format(new Date(`${at}-01`));

/** `Nov` @param {string} at `2026-11` */
export const shortMonth = (at) => monthName.format(new Date(`${at}-01`));

/**
 * @param {string} iso
 * @param {string} [text] The text, by default the time to the minute.
 */
export const time = (iso, text = minute(iso)) =>
  html`<time datetime=${iso} title="${iso.slice(0, 19).replace('T', ' ')} UTC · here ${local.format(new Date(iso))}">${text}</time>`;

/** @param {string} iso */
export const dayTime = (iso) => time(iso, dayOrMinute(iso));

/** `5 min ago`, `in 2 min`, with the exact time as tooltip. @param {string} iso */
export function fromNow(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (Math.abs(seconds) < 5) return time(iso, 'now');
  return time(iso, seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`);
}

/** `for 5 min`: how long something has been going on. @param {string} iso */
export const since = (iso) => `for ${duration(Math.max(0, (Date.now() - Date.parse(iso)) / 1000))}`;
