import { EARLIEST, type Instant, LATEST } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { HOUR_MS, type Window } from '../../model/window.ts';
import type { FileSink } from '../files/commit.ts';
import type { Partition } from '../files/event-index.ts';
import { fileName } from '../files/store/store.ts';
import type { Compression } from './format/index.ts';

export interface Lake extends FileSink {
  scheme: Scheme;
  compression: Compression;
}

/** How a lake is partitioned: by UTC day or hour, in the Hive layout. */
export type Scheme = 'day' | 'hour';

export function partitionOf(scheme: Scheme, at: Instant): Partition {
  const hour = Math.floor(at / HOUR_MS);
  return scheme === 'hour' ? hour : Math.floor(hour / 24) * 24;
}

/** `date=2026-11-14` or `date=2026-11-14/hour=07`. */
export function partitionPath(scheme: Scheme, partition: Partition): string {
  const iso = new Date(partition * HOUR_MS).toISOString();
  return scheme === 'day' ? `date=${iso.slice(0, 10)}` : `date=${iso.slice(0, 10)}/hour=${iso.slice(11, 13)}`;
}

export function filePath(scheme: Scheme, stream: StreamName, source: string, partition: Partition): string {
  return `${stream}/${partitionPath(scheme, partition)}/${fileName(source)}`;
}

const PATH = /^(?:clicks|leads|sales)\/date=(\d{4}-\d\d-\d\d)(?:\/hour=(\d\d))?\/[^/]+$/;

export const ALWAYS: Window = { start: EARLIEST, end: LATEST };

export const partitionWindow = (scheme: Scheme, partition: Partition): Window => ({
  start: partition * HOUR_MS,
  end: (partition + (scheme === 'hour' ? 1 : 24)) * HOUR_MS,
});

/** The partition of a file, from its path; undefined for a path of another scheme. */
export function partitionAt(scheme: Scheme, path: string): Partition | undefined {
  const [, date, hour] = PATH.exec(path) ?? [];
  if (date === undefined || (hour !== undefined) !== (scheme === 'hour')) return undefined;
  const partition = Math.floor(Date.parse(`${date}T${hour ?? '00'}:00:00.000Z`) / HOUR_MS);
  return Number.isNaN(partition) ? undefined : partition;
}

/** Why a path is not valid for a lake, or undefined. */
export function lakePathFault(path: string): string | undefined {
  if (/(^|[\\/])\.\.([\\/]|$)/.test(path)) return 'must not contain ..: write the real path of the folder';
  if (/\p{Cc}/u.test(path)) return 'must not contain control characters';
  if (/^s3:\/\/[^/]*[@:]/i.test(path))
    return 'must not hold a user name, password or port: keys come from the environment';
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(path);
  return isUrl && !/^s3:\/\/[^/]/.test(path) ? 'must be a folder, or s3://bucket/prefix' : undefined;
}
