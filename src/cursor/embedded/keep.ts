import type { Log } from '../../model/log.ts';
import type { Presence } from './presence.ts';

/**
 * Keeps our place in the server until it is released. A server that crashes forgets who was there, even if it comes back by
 * itself: a second owner would be let in beside us, and when it left as the last, it would stop the server under our hands.
 */
export function keepPlace<Place extends { presence: Presence }>(first: Place, again: () => Promise<Place>, log: Log) {
  let wanted = true;
  let current: Promise<Place | undefined> = Promise.resolve(first);
  const watch = async ({ presence }: Place): Promise<void> => {
    await presence.session.ended;
    if (wanted) current = comeBack(presence);
  };
  const comeBack = async (lost: Presence): Promise<Place | undefined> => {
    log.warn({}, 'the embedded Postgres went away; coming back to it');
    try {
      await lost.close();
      const place = await again();
      void watch(place);
      return place;
    } catch (error) {
      // Recovery: go on without a place. Work fails at its next query and says why; what was committed stays.
      log.error({ err: error }, 'the embedded Postgres did not come back');
      return undefined;
    }
  };
  void watch(first);
  return {
    /** The place as it is now, to be left by the caller; undefined: there is none any more. */
    release(): Promise<Place | undefined> {
      wanted = false;
      return current;
    },
  };
}
