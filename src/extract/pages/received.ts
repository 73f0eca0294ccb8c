import { foreignKind } from '../../api/check-filtered.ts';
import type { Page } from '../../api/client.ts';
import { BadRecord } from '../../model/errors.ts';
import type { Flatten, Row } from '../../model/flatten.ts';
import { processMemory } from '../../model/memory.ts';
import type { StreamName } from '../../model/streams.ts';
import { noticeAnswer, type Profile } from '../profile.ts';
import type { Observation, PageQuery, Stamped } from '../proof/answer.ts';
import type { Evidence } from '../proof/evidence.ts';
import type { Admission } from '../proof/prior.ts';
import type { ServiceClock } from '../service-clock.ts';

export interface PageResult extends Observation {
  readonly rows: readonly Row[];
  readonly rejected: readonly Rejection[];
  /** The result of admitting it as evidence. */
  readonly admission: Admission;
  /** The kind of event on it, if it is another stream's. */
  readonly foreignKind: string | undefined;
}

/** A record that could not be read, and why. */
export interface Rejection {
  record: unknown;
  reason: string;
}

/** The rows of a page that are in order, oldest first; none if the page proves nothing. */
export const sortedRows = ({ admission }: PageResult): readonly Stamped[] =>
  admission.kind === 'counts' ? admission.sorted : [];

export interface ReceiveOptions {
  stream: StreamName;
  flatten: Flatten;
  evidence: Evidence;
  profile: Profile;
  clock: ServiceClock;
  /** Callback for each answer: its response time, its size and its rows. */
  onAnswer(answer: Pick<Page, 'tookMs' | 'bytes'>, rows: readonly Row[]): void;
}

/** Large enough for a usual page of 1000 unless memory is scarce. */
const MOST_BYTES = processMemory.bytes / 48;

/** Processes an answer: flattens its rows, admits it as evidence, and updates the profile. */
export function receive(
  query: PageQuery,
  { records, serverNow, ...received }: Page,
  options: ReceiveOptions,
): PageResult {
  const { stream, flatten, evidence, profile, clock, onAnswer } = options;
  if (serverNow !== undefined) clock.set(serverNow);
  // Taken before its rows are processed: later arrivals are not on the page.
  const answeredAt = clock.now();
  const own = records.filter((record) => foreignKind(stream, record) === undefined);
  const { rows: shown, rejected } = flattenAll(own, flatten);
  const rows = withoutRepeats(shown);
  const count = own.length - (shown.length - rows.length);
  onAnswer(received, rows);
  // A chain holds a few pages, and its sinks hold more: if rows are large, ask for fewer.
  if (received.bytes > MOST_BYTES)
    profile.pageRows = Math.min(profile.pageRows, Math.ceil((records.length * MOST_BYTES) / received.bytes));
  const answer = { query, rows, count, answeredAt, foreign: records.length - own.length };
  const admission = evidence.admit(answer);
  noticeAnswer(profile, answer, admission);
  profile.keepsEnds ||= evidence.ends.areKept;
  profile.reachesAhead ||= evidence.ends.reachAhead;
  if (evidence.quietThrough !== undefined)
    profile.quietThrough = Math.max(evidence.quietThrough, profile.quietThrough ?? evidence.quietThrough);
  profile.contradictsItself ||= evidence.isContradicted;
  const kinds = admission.kind === 'foreign' ? records.map((record) => foreignKind(stream, record)) : [];
  return { ...answer, rejected, admission, foreignKind: kinds.find(Boolean) };
}

/** Deduplicates a row that is on a page twice; the last version counts. */
function withoutRepeats(rows: readonly Row[]): readonly Row[] {
  const once = new Map(rows.map((row) => [`${row.at} ${row.id}`, row]));
  return once.size === rows.length ? rows : [...once.values()];
}

export function flattenAll(records: readonly unknown[], flatten: Flatten): { rows: Row[]; rejected: Rejection[] } {
  const rows: Row[] = [];
  const rejected: Rejection[] = [];
  for (const record of records) {
    try {
      rows.push(flatten(record));
    } catch (error) {
      if (!(error instanceof BadRecord)) throw error;
      // Recovery: the record goes to quarantine with its reason; the rest of the page is used.
      rejected.push({ record: error.remains, reason: error.message });
    }
  }
  return { rows, rejected };
}
