import { readEvolved, recordLessons } from '../cursor/columns.ts';
import type { Database } from '../cursor/database/index.ts';
import type { Kind } from '../model/columns.ts';
import { StopStream } from '../model/errors.ts';
import { evolvedStream, type Lesson, learn, promote, widen } from '../model/evolution.ts';
import type { Row } from '../model/flatten.ts';
import type { Stream } from '../model/streams.ts';

/** What to do with a field that nobody declared: give it a column, keep it in `_extra`, or stop. */
export const UNKNOWN_FIELDS = ['evolve', 'extra', 'freeze'] as const;
export type UnknownFields = (typeof UNKNOWN_FIELDS)[number];

export interface Evolver {
  /** The stream as its table should be now, and the rows in that shape. */
  evolve(rows: readonly Row[]): Promise<{ stream: Stream; rows: Row[] }>;
  /** Columns of the table that hold more than was known here: taught by another process, or by a state that was lost. */
  adopt(wider: Readonly<Record<string, Kind>>): Promise<void>;
}

export interface EvolverOptions {
  state: Database;
  stream: Stream;
  source: string;
  runId: string;
  unknownFields: UnknownFields;
  /** Told of every change, for the run's record. */
  onLesson(lesson: Lesson): void;
}

export function createEvolver(options: EvolverOptions): Evolver {
  const { state, stream, source, runId, unknownFields, onLesson } = options;
  const record = { stream: stream.name, source, runId };
  return {
    async evolve(rows) {
      if (unknownFields === 'extra') return { stream, rows: [...rows] };
      // Read anew for every batch: another source may have taught the same table something meanwhile.
      let evolved = await readEvolved(state, stream.name);
      const news = learn(stream, evolved, rows);
      if (news.length > 0 && unknownFields === 'freeze') throw frozen(source, stream, news);
      if (news.length > 0) {
        const taught = await recordLessons(state, record, (known) => learn(stream, known, rows));
        evolved = taught.evolved;
        taught.lessons.forEach(onLesson);
      }
      return { stream: evolvedStream(stream, evolved), rows: promote(stream, evolved, rows) };
    },
    async adopt(wider) {
      const { lessons } = await recordLessons(state, record, (known) =>
        known.flatMap((column) => {
          // A column may be called `constructor`, which every object has.
          const held = Object.hasOwn(wider, column.name) ? wider[column.name] : undefined;
          const kind = widen(column.kind, held ?? column.kind);
          return kind === column.kind ? [] : [{ ...column, kind, was: column.kind }];
        }),
      );
      lessons.forEach(onLesson);
    },
  };
}

function frozen(source: string, { name }: Stream, news: readonly Lesson[]): StopStream {
  const fields = news.map(({ path, kind, was }) => (was ? `${path} (${kind}, was ${was})` : `${path} (${kind})`));
  return new StopStream(`the service sent fields that the frozen schema does not have: ${fields.join(', ')}`, {
    where: { source, stream: name },
    next: 'set unknownFields of this stream to evolve (new columns) or extra (keep them in _extra), then run again',
  });
}

/** For people: `click.ua → click_ua (text)`, `click.score → click_score (integer → number)`. */
export const describeLesson = ({ path, name, kind, was }: Lesson): string =>
  `${path} → ${name} (${was ? `${was} → ${kind}` : kind})`;
