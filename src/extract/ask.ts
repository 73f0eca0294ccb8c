import type { EventsApi } from '../api/events-api.ts';
import { BadRecord } from '../model/errors.ts';
import type { Flatten, Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { straysOf } from './in-line.ts';
import type { Attendance, Profile, Rejection } from './reader.ts';
import type { ServiceClock } from './service-clock.ts';

/** One question to the service, in the terms of the proof. */
export interface Question {
  order: 'asc' | 'desc';
  from: Instant;
  /** Nothing newer is asked for; without it, everything there is, the future included. */
  until?: Instant | undefined;
  page: number;
  limit: number;
  /** Ask only once: the caller has its own use for a failure. */
  once?: boolean;
}

/** What came back: neighbours in time, in one snapshot, oldest first whichever way they were asked for. */
export interface Answer {
  rows: readonly Row[];
  /** Those among the rows whose times are out of line with their neighbours: they are neither `oldest` nor `newest`. */
  strays: ReadonlySet<Row>;
  rejected: readonly Rejection[];
  /** Records on the page, usable or not. Fewer than were asked for says nothing: services hide rows after counting them. */
  count: number;
  oldest: Instant | undefined;
  newest: Instant | undefined;
}

export interface Asker {
  ask(question: Question): Promise<Answer>;
  profile: Profile;
  /** What a page may hold; `profile.pageRows` is what the service could put on one lately. */
  mostRows: number;
  clock: ServiceClock;
}

export interface AskerOptions extends Attendance {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  flatten: Flatten;
  profile: Profile;
  mostRows: number;
  clock: ServiceClock;
  /** The service speaks of nothing older, and refuses to be asked. */
  earliest: Instant;
  /** Told how long each answer took. */
  onAnswer(ms: number): void;
}

/** Future-dated events exist; asking this far ahead sees them. */
const AHEAD_MS = 366 * 86_400_000;

export function createAsker(options: AskerOptions): Asker {
  const { api, stream, filters, flatten, profile, mostRows, clock, earliest, lane, signal, onAnswer } = options;
  return {
    profile,
    mostRows,
    clock,
    async ask({ order, from, until = clock.now() + AHEAD_MS, page, limit, once }) {
      const query = { stream, start: Math.max(from, earliest), end: until, sortOrder: order, page, limit, filters };
      const answer = await api.page(query, { lane, signal, ...(once && { tries: 1 }) });
      onAnswer(answer.tookMs);
      const { rows, rejected } = flattenAll(answer.records, flatten);
      if (answer.serverNow !== undefined) {
        clock.set(
          answer.serverNow,
          rows.map(({ at }) => at),
        );
      }
      if (order === 'desc') rows.reverse();
      const strays = straysOf(rows, { from, until: Math.min(until, clock.now()) });
      rows.sort((a, b) => a.at - b.at);
      const oldest = rows.find((row) => !strays.has(row))?.at;
      const newest = rows.findLast((row) => !strays.has(row))?.at;
      const result = { rows, strays, rejected, count: answer.records.length, oldest, newest };
      notice(profile, from, result);
      return result;
    },
  };
}

/** Learns from an answer what the server does with bounds and how fine its clock is. */
function notice(profile: Profile, from: Instant, { rows, oldest }: Answer): void {
  if (oldest === undefined) return;
  const wholeSeconds = rows.filter((row) => row.at % 1000 === 0).length;
  // One row in a thousand ends in .000 by chance; a tenth of them does not.
  profile.tickMs = wholeSeconds * 10 > rows.length ? 1000 : 1;
  if (oldest < from - 1000) profile.granularity = 'day';
}

export function flattenAll(records: readonly unknown[], flatten: Flatten): { rows: Row[]; rejected: Rejection[] } {
  const rows: Row[] = [];
  const rejected: Rejection[] = [];
  for (const record of records) {
    try {
      rows.push(flatten(record));
    } catch (error) {
      if (!(error instanceof BadRecord)) throw error;
      // Recovery: the record goes to quarantine with its reason; the page goes on.
      rejected.push({ record: error.remains, reason: error.message });
    }
  }
  return { rows, rejected };
}
