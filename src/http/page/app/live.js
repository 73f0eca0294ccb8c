/** @import { LiveEvent, Overview, Readiness, Topic } from '../../api-types.ts' */
import { currentSession } from './session.js';

/** @typedef {Topic | 'overview' | 'everything'} News */

const AGAIN_MS = 2000;

/**
 * The server's news. The browser reconnects by itself while the server is away; where it gives up (a proxy answered, or we are not
 * signed in any more), we ask who we are and begin anew.
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
      const { signedIn } = await currentSession({ anew: true });
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
