/** @import { LiveEvent, Overview, Readiness, Topic } from '../../api-types.ts' */
import { currentSession, get } from './session.js';

/** @typedef {Topic | 'overview' | 'everything'} Update */

const RETRY_MS = 2000;

/**
 * Live updates. The browser reconnects automatically while the server is down. When it gives up (a proxy answered, or the session has
 * ended), this checks the session and opens the connection again.
 * @param {{
 *   onOverview(overview: Overview): void,
 *   onReadiness(readiness: Readiness): void,
 *   onUpdates(updates: Update[]): void,
 *   onState(state: 'live' | 'waiting'): void,
 *   onSignedOut(): void,
 * }} listener
 * @returns {() => void} Closes the connection.
 */
export function listen({ onOverview, onReadiness, onUpdates, onState, onSignedOut }) {
  let [wasDisconnected, ended] = [false, false];
  let close = () => {};

  function connect() {
    const source = new EventSource('api/events');
    close = () => source.close();
    /** @param {LiveEvent['event']} name @param {(data: any) => void} take */
    const on = (name, take) => source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    on('overview', (data) => {
      onOverview(data);
      onUpdates(['overview']);
    });
    on('readiness', onReadiness);
    on('changed', ({ topics }) => onUpdates(topics));
    on('reset', () => onUpdates(['everything']));
    source.onopen = () => {
      onState('live');
      if (wasDisconnected) onUpdates(['everything']);
      wasDisconnected = false;
    };
    source.onerror = () => {
      if (ended) return;
      wasDisconnected = true;
      onState('waiting');
      if (source.readyState === EventSource.CLOSED) setTimeout(reconnect, RETRY_MS);
    };
  }

  async function reconnect() {
    if (ended) return;
    try {
      const { signedIn } = await currentSession({ refresh: true });
      if (signedIn) connect();
      else onSignedOut();
    } catch {
      // Recovery: the server is still down; retries until it answers.
      setTimeout(reconnect, RETRY_MS);
    }
  }

  connect();
  return () => {
    ended = true;
    close();
  };
}

/** The newest overview, loaded or received, and when. @type {{ overview: Overview, at: number } | undefined} */
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
 * The overview with current ages: the server sends it only on changes, while ages keep growing.
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

export async function sourceNames() {
  const overview = (await latestOverview())();
  return [...new Set(overview.streams.map(({ source }) => source))];
}
