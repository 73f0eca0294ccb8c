import type { StreamName } from '../../model/streams.ts';
import { count, figure, flag, moment, named, object, oneOf, orNull, share, stream, text, type z } from '../shapes.ts';
import type { Backfill } from './backfills.ts';
import type { LastRun } from './runs.ts';

/** What is being read at this moment. */
export const Activity = named(
  'Activity',
  object({
    kind: oneOf(['sync', 'backfill']),
    id: text.describe('of the run, or of the backfill'),
    source: text,
    stream,
    startedAt: moment,
    progress: orNull(share).describe('null where nobody can know it'),
    rows: orNull(count),
    rowsPerSecond: orNull(figure),
    etaSeconds: orNull(figure),
    paused: flag,
  }),
);
export type Activity = z.infer<typeof Activity>;

interface Held {
  source: string;
  stream: StreamName;
  last: LastRun | null;
  /** Somebody holds the stream now. */
  leased: boolean;
}

/** A run that says it is running, and whose process still holds the stream. */
export const syncUnderWay = ({ source, stream, last, leased }: Held): Activity[] =>
  leased && last?.state === 'running' && last.kind === 'sync'
    ? [
        {
          kind: 'sync',
          id: last.id,
          source,
          stream,
          startedAt: last.startedAt,
          progress: null,
          rows: null,
          rowsPerSecond: null,
          etaSeconds: null,
          paused: false,
        },
      ]
    : [];

export const backfillUnderWay = (backfill: Backfill): Activity[] => {
  const { id, source, stream, createdAt, state, progress, rows, rowsPerSecond, etaSeconds } = backfill;
  if (state !== 'queued' && state !== 'paused') return [];
  const figures = { progress, rows, rowsPerSecond, etaSeconds, paused: state === 'paused' };
  return [{ kind: 'backfill', id, source, stream, startedAt: createdAt, ...figures }];
};
