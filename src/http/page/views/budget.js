/** @import { Budget, KeyBudget } from '../../api-types.ts' */
/** @import { View } from '../app/screen.js' */
import { get } from '../app/session.js';
import { bars, slotsOf } from '../parts/chart.js';
import { html } from '../parts/dom.js';
import { aside, badge, choice, empty, opening, panel } from '../parts/elements.js';
import { counted, duration, figure, percent } from '../parts/words.js';

const SPANS = { hour: '1 hour', day: '24 hours', week: '7 days' };
/** The minutes of the range and of one bar: about a hundred bars each. */
const SCALES = { hour: [60, 1], day: [1440, 15], week: [10_080, 120] };
const LANES = /** @type {const} */ (['fresh', 'repair', 'backfill']);

/** @param {string | undefined} name */
const spanOf = (name) => (name === 'hour' || name === 'week' ? name : 'day');

/** The request budget of each key, and its use. @type {View} */
export const budget = {
  title: () => 'Budget',
  updates: ['budget'],
  load({ query }, signal) {
    const [minutes = 0, step = 0] = SCALES[spanOf(query.span)];
    return get('/api/budget', { minutes, step }, signal);
  },
  draw(/** @type {Budget} */ found, address) {
    const span = spanOf(address.query.span);
    return [
      opening('Budget', 'Requests to the service by purpose, as a share of the budget of the plan.'),
      choice('How far back', address, 'span', span, SPANS),
      found.keys.length === 0 && empty('No key has been used yet.'),
      ...found.keys.map((key) => keyPanel(key, found)),
    ];
  },
};

/** @param {KeyBudget} key @param {Budget} budget */
function keyPanel({ sources, perSecond, pausedSeconds, points }, { now, minutes, step }) {
  const name = sources.length === 0 ? 'A key that is no longer in the config' : sources.join(', ');
  const allowed = perSecond * step * 60;
  const slots = slotsOf({
    from: new Date(Date.parse(now) - minutes * 60_000).toISOString(),
    to: now,
    stepMs: step * 60_000,
    points,
    atOf: ({ at }) => at,
    slot: (found) => ({
      values: LANES.map((lane) => found.reduce((sum, { byLane }) => sum + byLane[lane], 0)),
      mark: found.reduce((sum, { tooManyRequests }) => sum + tooManyRequests, 0),
    }),
  });
  // A budget that is hardly used gets a smaller scale, or its bars would be invisible.
  const most = Math.max(1, ...slots.map(({ values }) => values?.reduce((a, b) => a + b, 0) ?? 0));
  const top = most * 4 < allowed ? Math.ceil(most * 1.25) : allowed;
  const requests = points.reduce((sum, point) => sum + point.requests, 0);
  const refused = points.reduce((sum, { tooManyRequests }) => sum + tooManyRequests, 0);
  const share = requests / (perSecond * minutes * 60);
  const said = `${counted(requests, 'request')}, ${percent(share)} of the ${figure(perSecond)} per second allowed`;
  const chart =
    points.length === 0
      ? empty('No requests in this period.')
      : bars({
          label: `${said}${refused > 0 ? `, ${counted(refused, 'answer')} 429` : ''}`,
          layers: LANES.map((lane) => ({ name: lane, kind: lane })),
          slots,
          top,
          stepMs: step * 60_000,
          note:
            top < allowed
              ? `Scale: ${counted(top, 'request')} in ${duration(step * 60)}; the plan allows ${figure(allowed)}`
              : `Scale: the ${figure(allowed)} requests that the plan allows in ${duration(step * 60)}`,
          mark: '429',
        });
  const side = html`<span class="row">
    ${aside(said)}
    ${refused > 0 && badge(`${figure(refused)} × 429`, 'warn')}
    ${pausedSeconds !== null && badge(`pause of ${duration(pausedSeconds)}`, 'warn')}
  </span>`;
  return panel(name, chart, { side, key: name, label: `Budget of ${name}` });
}
