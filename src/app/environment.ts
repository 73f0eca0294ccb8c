import { readFileSync } from 'node:fs';
import type { Environment } from '../config/document.ts';
import type { Log } from '../model/log.ts';
import { createLog } from './log.ts';

/** The one place that reads the environment. It loads next to nothing, since every start passes through here. */

export const variables = (): Environment => process.env;

export const logOfEnvironment = (): Log =>
  createLog({ level: process.env.TRIBUTARY_LOG || 'warn', isForPeople: process.stderr.isTTY === true });

/** The names are OpenTelemetry's own; its packages read the rest of them. */
export const wantsTraces = (): boolean =>
  process.env.OTEL_SDK_DISABLED !== 'true' &&
  process.env.OTEL_TRACES_EXPORTER !== 'none' &&
  Boolean(process.env.OTEL_EXPORTER_OTLP_ENDPOINT || process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);

export const serviceName = (): string => process.env.OTEL_SERVICE_NAME || 'tributary';

export const wantsNoColour = (): boolean => (process.env.NO_COLOR ?? '') !== '' || process.env.TERM === 'dumb';

/** Of this package. */
export function ownVersion(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}
