/** @import { LiveEvent, Overview, Readiness, Topic } from '../../api-types.ts' */
import { currentSession, get } from './session.js';

/** @typedef {Topic | 'overview' | 'everything'} News */

const AGAIN_MS = 2000;

/**
 * The server's news. The browser reconnects by itself while the server is away; where it gives up (a proxy answered, or we are not
 * signed in any more), we ask who we are and start over.
 * @param {{
 *   onOverview(overview: Overview): void,
 *   onReadiness(readiness: Readiness): void,
 *   onNews(news: News[]): void,
 *   onState(state: 'live' | 'waiting'): void,
 *   onSignedOut(): void,
 * }} listener
 * @returns {() => void} Ends it.
 */
export function listen({ onOverview, onReadiness, onNews, onState, onSignedOut }) {
  let [wasAway, ended] = [false, false];
  let close = () => {};

  function connect() {
    const source = new EventSource('api/events');
    close = () => source.close();
    /** @param {LiveEvent['event']} name @param {(data: any) => void} take */
    const on = (name, take) => source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    on('overview', (data) => {
      onOverview(data);
      onNews(['overview']);
    });
    on('readiness', onReadiness);
    on('changed', ({ topics }) => onNews(topics));
    on('reset', () => onNews(['everything']));
    source.onopen = () => {
      onState('live');
      if (wasAway) onNews(['everything']);
      wasAway = false;
    };
    source.onerror = () => {
      if (ended) return;
      wasAway = true;
      onState('waiting');
      if (source.readyState === EventSource.CLOSED) setTimeout(askAgain, AGAIN_MS);
    };
  }

  async function askAgain() {
    if (ended) return;
    try {
      const { signedIn } = await currentSession({ refresh: true });
      if (signedIn) connect();
      else onSignedOut();
    } catch {
      // Recovery: still away. It is asked again until it answers.
      setTimeout(askAgain, AGAIN_MS);
    }
  }

  connect();
  return () => {
    ended = true;
    close();
  };
}

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
