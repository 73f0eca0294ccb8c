import type { Log } from '../../src/model/log.ts';

/** For tests that do not check the log. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
