import { table } from './table.ts';

/** A column of a table that may have to do with less room. */
export interface FittedColumn<T> {
  header: string;
  of(row: T): string;
  /** Which go first where the terminal is too narrow for all: 1, then 2, … Those without it always stay. */
  spare?: number;
}

/** All columns that fit. A table that wraps is no table; what is left out is in `--json`. */
export function fittedTable<T>(columns: ReadonlyArray<FittedColumn<T>>, rows: readonly T[], width: number): string {
  const mostSpare = Math.max(0, ...columns.map(({ spare = 0 }) => spare));
  for (let left = 0; ; left++) {
    const shown = columns.filter(({ spare = mostSpare + 1 }) => spare > left);
    const text = table(
      shown.map(({ header }) => header),
      rows.map((row) => shown.map(({ of }) => of(row))),
    );
    if (left === mostSpare || text.split('\n').every((line) => line.length <= width)) return text;
  }
}
