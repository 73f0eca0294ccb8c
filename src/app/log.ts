import { pino } from 'pino';
import { ConfigError } from '../model/errors.ts';
import type { Log } from '../model/log.ts';

/** Keys that hold secrets are taken out, whatever object carries them here. */
const SECRETS = ['apiKey', 'authorization', 'password', 'salt', 'token', 'url'].flatMap((key) => [key, `*.${key}`]);

const LEVELS = [...Object.values(pino.levels.labels), 'silent'];

/** The one home of pino. Lines go to standard error, because standard output belongs to results: text for a person, else JSON. */
export function createLog({ level, isForPeople }: { level: string; isForPeople: boolean }): Log {
  if (!LEVELS.includes(level)) {
    throw new ConfigError('TRIBUTARY_LOG is none of the log levels', { next: `use one of: ${LEVELS.join(', ')}` });
  }
  const options = { level, base: null, redact: SECRETS, timestamp: pino.stdTimeFunctions.isoTime };
  return isForPeople
    ? pino(options, { write: (json) => void process.stderr.write(lineForPeople(json)) })
    : pino(options, pino.destination({ fd: 2, sync: true }));
}

interface Line {
  level: number;
  msg: string;
  source?: string;
  stream?: string;
}

export function lineForPeople(json: string): string {
  const { level, msg, source, stream } = JSON.parse(json) as Line;
  const place = [source, stream].filter(Boolean).join('/');
  // The line is cleared first: a progress line may stand there.
  return `\r\x1b[2K${pino.levels.labels[level]}: ${place ? `${place}: ` : ''}${msg}\n`;
}
