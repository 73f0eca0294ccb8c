import { runStartApp } from '../../src/app/start.ts';
import type { Config } from '../../src/config/index.ts';
import { silentLog } from './silent-log.ts';
import { FAST } from './workers.ts';

export interface ControlRoom {
  url: string;
  /** Ends the worker and its server, as Ctrl-C does. */
  close(): Promise<void>;
}

const LIVE_PACE = { lookMs: 300, beatMs: 5000 };

/** `tributary start` in this process, on a free port, with everything looked at more often. */
export async function startControlRoom(config: Config, livePace = LIVE_PACE): Promise<ControlRoom> {
  const stop = new AbortController();
  let done: Promise<void> = Promise.resolve();
  const url = await new Promise<string>((onListening, failed) => {
    const { signal } = stop;
    done = runStartApp({ config, log: silentLog, signal, pace: FAST, livePace, onListening });
    done.catch(failed);
  });
  return {
    url,
    async close() {
      stop.abort();
      await done;
    },
  };
}
