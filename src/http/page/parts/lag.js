import { h } from '../dom/h.js';
import { duration } from '../words/figures.js';
import { badge } from './badge.js';

/**
 * How far behind, and how that stands to what was promised. Without a target there is no bar: nothing to be full.
 * @param {{ lagSeconds: number | null, maxLagSeconds: number | null }} stream
 */
export function lag({ lagSeconds, maxLagSeconds }) {
  if (lagSeconds === null) return null;
  const isLate = maxLagSeconds !== null && lagSeconds > maxLagSeconds;
  return h(
    'span',
    { class: 'lag' },
    h(
      'span',
      { class: 'row' },
      h('b', {}, duration(lagSeconds)),
      maxLagSeconds !== null && h('span', { class: 'muted small' }, `of ${duration(maxLagSeconds)}`),
      isLate && badge('late'),
    ),
    maxLagSeconds !== null &&
      h('span', {
        class: isLate ? 'bar over' : 'bar',
        'aria-hidden': 'true',
        vars: { '--share': String(Math.min(1, lagSeconds / maxLagSeconds)) },
      }),
  );
}
