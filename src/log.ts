import { pino } from 'pino';
import type { Log } from './model/log.ts';

/** The one home of pino. Lines go to standard error: standard output belongs to results. */
export function createLog(level: string): Log {
  // Keys that hold secrets are taken out whatever object carries them here.
  const redact = [
    'apiKey',
    'authorization',
    'password',
    'token',
    'url',
    '*.apiKey',
    '*.authorization',
    '*.password',
    '*.token',
  ];
  return pino(
    { level, base: null, redact, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}
