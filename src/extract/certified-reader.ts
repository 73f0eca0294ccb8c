import type { EventsApi } from '../api/events-api.ts';
import { MAX_LIMIT } from '../api/params.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { type Asker, createAsker } from './ask.ts';
import { joins } from './frontier.ts';
import type { Attendance, Profile, Reader } from './reader.ts';
import { createServiceClock } from './service-clock.ts';
import { sweep } from './sweep.ts';
import { walkBack } from './walk-back.ts';

export interface ReaderOptions {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  flatten: Flatten;
  profile: Profile;
  /** The beginning of the service's history, where that was found: it refuses to be asked for anything older. */
  earliest?: Instant | undefined;
  /** The most rows that may be asked for on a page. */
  mostRows?: number;
  /** Our clock, for the time before the service has told its own. */
  now?: () => Instant;
}

/** Further back than this, an exact server is read faster by the chain, which also keeps what it has proven. */
const TAIL_PAGES = 8;
const UNLIMITED = 2000;

export function createReader(settings: ReaderOptions): Reader {
  const { now, mostRows = MAX_LIMIT, earliest = Number.NEGATIVE_INFINITY, ...options } = settings;
  const profile = { ...options.profile };
  // Whatever made pages smaller may be over: every run tries twice as many rows as the last one ended with.
  profile.pageRows = Math.min(mostRows, profile.pageRows * 2);
  const clock = createServiceClock(now && { steady: now, ours: now });
  let answerMs = 0;
  const onAnswer = (ms: number): void => {
    answerMs = ms;
  };
  const attend = ({ lane, signal }: Attendance): Asker =>
    createAsker({ ...options, profile, mostRows, clock, earliest, lane, signal, onAnswer });

  return {
    profile: () => ({ ...profile }),
    serverNow: clock.now,
    answerMs: () => answerMs,
    async *tail({ floor, lookback, since, ...attendance }) {
      const asker = attend(attendance);
      // From the very beginning: only an older row on the newest page shows that it joins.
      const from = since - profile.tickMs;
      const mostPages = profile.granularity === 'day' ? UNLIMITED : TAIL_PAGES;
      const walk = walkBack(asker, { from, floor: lookback ?? floor, mostPages });
      // The clock of the newest page, not of the last one: what arrived during the walk is on none of its pages.
      let next = await walk.next();
      const serverNow = clock.now();
      while (!next.done) {
        yield next.value;
        next = await walk.next();
      }
      const far = next.value;
      const reached = floor !== undefined && joins({ at: floor, inclusive: false }, far.above);
      return { reached, far, serverNow };
    },
    async *sweep({ window, since = window.start, far, ...attendance }) {
      const start = Math.min(since, window.start);
      yield* sweep(attend(attendance), { window, since: start, far });
    },
  };
}
