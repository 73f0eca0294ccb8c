import { readEvolved, recordSchemaChanges } from '../cursor/columns.ts';
import type { Database } from '../cursor/database/index.ts';
import type { Kind } from '../model/columns.ts';
import { StopStream } from '../model/errors.ts';
import {
  type EvolvedColumn,
  evolvedStream,
  findSchemaChanges,
  promote,
  type SchemaChange,
  widen,
} from '../model/evolution.ts';
import type { Row } from '../model/flatten.ts';
import type { Stream } from '../model/streams.ts';

/** What to do with an undeclared field: add a column, keep it in `_extra`, or stop. */
export const UNKNOWN_FIELDS = ['evolve', 'extra', 'freeze'] as const;
export type UnknownFields = (typeof UNKNOWN_FIELDS)[number];

export type SchemaEvolution = ReturnType<typeof createSchemaEvolution>;

interface EvolverOptions {
  state: Database;
  stream: Stream;
  source: string;
  runId: string;
  unknownFields: UnknownFields;
  /** The columns as read at the start of the run: used for the first batch only. */
  known?: readonly EvolvedColumn[];
  onSchemaChange(change: SchemaChange): void;
}

export function createSchemaEvolution(options: EvolverOptions) {
  const { state, stream, source, runId, unknownFields, onSchemaChange } = options;
  const record = { stream: stream.name, source, runId };
  let { known } = options;
  return {
    async evolve(rows: readonly Row[]): Promise<{ stream: Stream; rows: Row[] }> {
      if (unknownFields === 'extra') return { stream, rows: [...rows] };
      // Later batches read the columns again: another source may have changed the same table meanwhile.
      let evolved = known ?? (await readEvolved(state, stream.name));
      known = undefined;
      const changes = findSchemaChanges(stream, evolved, rows);
      if (changes.length > 0 && unknownFields === 'freeze') throw frozen(source, stream, changes);
      if (changes.length > 0) {
        const recorded = await recordSchemaChanges(state, record, (known) => findSchemaChanges(stream, known, rows));
        evolved = recorded.evolved;
        recorded.changes.forEach(onSchemaChange);
      }
      return { stream: evolvedStream(stream, evolved), rows: promote(stream, evolved, rows) };
    },
    /** Records columns whose type in the table is wider than in the state: another process widened them, or the state was lost. */
    async widenColumns(wider: Readonly<Record<string, Kind>>): Promise<void> {
      const { changes } = await recordSchemaChanges(state, record, (known) =>
        known.flatMap((column) => {
          // hasOwn, because a column may be called `constructor`, which every object inherits.
          const inTable = Object.hasOwn(wider, column.name) ? wider[column.name] : undefined;
          const kind = widen(column.kind, inTable ?? column.kind);
          return kind === column.kind ? [] : [{ ...column, kind, was: column.kind }];
        }),
      );
      changes.forEach(onSchemaChange);
    },
  };
}

function frozen(source: string, { name }: Stream, changes: readonly SchemaChange[]): StopStream {
  const fields = changes.map(({ path, kind, was }) => `${shown(path)} (${was ? `${kind}, was ${was}` : kind})`);
  return new StopStream(`the service sent fields that the frozen schema does not have: ${fields.join(', ')}`, {
    where: { source, stream: name },
    next: 'set unknownFields of this stream to evolve (new columns) or extra (keep them in _extra), then run again',
  });
}

/** For display: `click.ua → click_ua (text)`, `click.score → click_score (integer → number)`. */
export const describeSchemaChange = ({ path, name, kind, was }: SchemaChange): string =>
  `${shown(path)} → ${name} (${was ? `${was} → ${kind}` : kind})`;

/** Field names come from the service: escapes control characters, which could move the terminal's cursor or reverse the text. */
const shown = (path: string): string =>
  path.replace(/\p{C}/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
