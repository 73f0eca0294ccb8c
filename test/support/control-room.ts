import { runStartApp, type StartOptions } from '../../src/app/start.ts';
import type { Config } from '../../src/config/index.ts';
import type { Log } from '../../src/model/log.ts';
import { silentLog } from './silent-log.ts';
import { FAST } from './workers.ts';

export interface ControlRoom {
  url: string;
  /** With the token that was made, where the config names none. */
  link: string | undefined;
  /** Ends the worker and its server, as Ctrl-C does. */
  close(): Promise<void>;
}

const LIVE_PACE = { pollMs: 300, heartbeatMs: 5000 };

/** `tributary start` in this process, on a free port, with everything looked at more often. */
export async function startControlRoom(
  config: Config,
  liveTimings = LIVE_PACE,
  tokenFolder?: string,
  log: Log = silentLog,
): Promise<ControlRoom> {
  const stop = new AbortController();
  let done: Promise<void> = Promise.resolve();
  let link: string | undefined;
  const url = await new Promise<string>((listening, failed) => {
    const { signal } = stop;
    const onListening: StartOptions['onListening'] = (at, room) => {
      link = room.link;
      listening(at);
    };
    const options = { config, log, signal, timings: FAST, liveTimings, onListening };
    done = runStartApp({ ...options, ...(tokenFolder !== undefined && { tokenFolder }) });
    done.catch(failed);
  });
  return {
    url,
    link,
    async close() {
      stop.abort();
      await done;
    },
  };
}
