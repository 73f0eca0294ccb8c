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
  /** What it was worth as evidence. */
  readonly admission: Admission;
  /** Whose rows are on it, where they are those of another stream. */
  readonly foreignKind: string | undefined;
}

/** Something that could not be read, and why. */
export interface Rejection {
  record: unknown;
  reason: string;
}

/** The rows of a page that are in order, oldest first; none where it proves nothing. */
export const sortedRows = ({ admission }: PageResult): readonly Stamped[] =>
  admission.kind === 'counts' ? admission.sorted : [];

export interface ReceiveOptions {
  stream: StreamName;
  flatten: Flatten;
  evidence: Evidence;
  profile: Profile;
  clock: ServiceClock;
  /** Told of each answer: how long it took, how large it was, and its rows. */
  onAnswer(answer: Pick<Page, 'tookMs' | 'bytes'>, rows: readonly Row[]): void;
}

/** A usual page of 1000 fits where memory is not scarce. */
const MOST_BYTES = processMemory.bytes / 48;

/** Takes an answer in: its rows, what it is worth as evidence, and what it says of the service. */
export function receive(
  query: PageQuery,
  { records, serverNow, ...received }: Page,
  options: ReceiveOptions,
): PageResult {
  const { stream, flatten, evidence, profile, clock, onAnswer } = options;
  if (serverNow !== undefined) clock.set(serverNow);
  // Before the work on its rows: what arrives meanwhile is not on the page.
  const answeredAt = clock.now();
  const own = records.filter((record) => foreignKind(stream, record) === undefined);
  const { rows: shown, rejected } = flattenAll(own, flatten);
  const rows = withoutRepeats(shown);
  const count = own.length - (shown.length - rows.length);
  onAnswer(received, rows);
  // A chain holds a few pages, and its sinks hold more: of large rows it asks for fewer.
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

/** A row that stands on a page twice is one row, in its last version. */
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
      // Recovery: the record goes to quarantine with its reason; the page goes on.
      rejected.push({ record: error.remains, reason: error.message });
    }
  }
  return { rows, rejected };
}
