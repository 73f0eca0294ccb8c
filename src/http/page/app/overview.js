/** @import { Overview } from '../../api-types.ts' */
import { get } from './session.js';

/** The newest overview that came, by asking or by itself, and when. */
/** @type {{ overview: Overview, at: number } | undefined} */
let kept;

/** @param {Overview} overview */
export function keepOverview(overview) {
  kept = { overview, at: Date.now() };
}

export function forgetOverview() {
  kept = undefined;
}

/** @returns {Overview | undefined} */
export const knownOverview = () => kept?.overview;

/**
 * The overview, whenever it is looked at: the server sends it when something changed, and time goes by without a word from it.
 * @param {AbortSignal} [signal]
 * @returns {Promise<() => Overview>}
 */
export async function latestOverview(signal) {
  if (!kept) keepOverview(await get('/api/overview', {}, signal));
  const { overview, at } = /** @type {NonNullable<typeof kept>} */ (kept);
  return () => aged(overview, (Date.now() - at) / 1000);
}

/** @param {Overview} overview @param {number} seconds @returns {Overview} */
const aged = (overview, seconds) => ({
  ...overview,
  streams: overview.streams.map((stream) => ({
    ...stream,
    lagSeconds: stream.lagSeconds === null ? null : stream.lagSeconds + seconds,
  })),
});

/** Names of sources that the server knows. */
export async function sourceNames() {
  const overview = (await latestOverview())();
  return [...new Set(overview.streams.map(({ source }) => source))];
}
