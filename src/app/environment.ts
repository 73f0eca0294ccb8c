import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import type { Environment } from '../config/document.ts';
import { ConfigError } from '../model/errors.ts';
import { heard, type Log, SECRET_FIELDS } from '../model/log.ts';

/** The only place that reads the environment. It imports little, because every start loads it. */

/**
 * The environment, with secrets from files as in containers: if `NAME` is not set, but `NAME_FILE` is, the value is read from the
 * file at that path. A file is read only when its variable is used.
 */
export function variables(): Environment {
  const filled: Record<string, string | undefined> = { ...process.env };
  for (const [name, path] of Object.entries(process.env)) {
    const variable = /^(\w+)_FILE$/.exec(name)?.[1];
    if (!variable || !path || process.env[variable]) continue;
    const get = () => readSecret(name, path);
    Object.defineProperty(filled, variable, { enumerable: true, configurable: true, get });
  }
  return filled;
}

function readSecret(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${name} names the file ${path}, which cannot be read (${code})`, {
      next: 'correct the path, or let this user read the file',
    });
  }
}

/** @param print Receives the readable lines; used only if standard error is a terminal. */
export const logOfEnvironment = (print: (text: string) => void = (text) => void process.stderr.write(text)): Log =>
  createLog({ level: process.env.TRIBUTARY_LOG || 'warn', ...(process.stderr.isTTY && { print }) });

/** For the S3 client, which reads credentials and region itself. */
export function s3Settings(): { pathStyle: boolean } {
  // Suppresses the SDK's warning that its later versions will not support Node 20.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  // Servers other than Amazon's usually support buckets only as the first part of a path.
  return { pathStyle: Boolean(process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL) };
}

/** OpenTelemetry's own variables; its packages read the rest of them. */
export const wantsTraces = (): boolean =>
  process.env.OTEL_SDK_DISABLED !== 'true' &&
  process.env.OTEL_TRACES_EXPORTER !== 'none' &&
  Boolean(process.env.OTEL_EXPORTER_OTLP_ENDPOINT || process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);

export const serviceName = (): string => process.env.OTEL_SERVICE_NAME || 'tributary';

export const wantsNoColour = (): boolean => (process.env.NO_COLOR ?? '') !== '' || process.env.TERM === 'dumb';

export function ownVersion(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

/** Keys that hold secrets are removed from every logged object. */
const SECRETS = SECRET_FIELDS.flatMap((key) => [key, `*.${key}`]);

const LEVELS = [...Object.values(pino.levels.labels), 'silent'];

/** The only user of pino. Logs readable lines to `print`; without it, JSON to standard error, because standard output is for results. */
export function createLog({ level, print }: { level: string; print?: (text: string) => void }): Log {
  if (!LEVELS.includes(level)) {
    throw new ConfigError('TRIBUTARY_LOG is not a log level', { next: `use one of: ${LEVELS.join(', ')}` });
  }
  const options = { level, base: null, redact: SECRETS, timestamp: pino.stdTimeFunctions.isoTime };
  const target = print
    ? { write: (json: string) => print(readableLine(json)) }
    : pino.destination({ fd: 2, sync: true });
  return heard(pino(options, target));
}

interface LogLine {
  level: number;
  msg: string;
  source?: string;
  stream?: string;
}

export function readableLine(json: string): string {
  const { level, msg, source, stream } = JSON.parse(json) as LogLine;
  const place = [source, stream].filter(Boolean).join('/');
  return `${pino.levels.labels[level]}: ${place ? `${place}: ` : ''}${msg}\n`;
}
