/** A plain table: words to the left, figures to the right, as narrow as its content. */
export function table(headers: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const lines = [headers, ...rows];
  const widths = headers.map((_, i) => Math.max(...lines.map((line) => width(line[i] ?? ''))));
  const isFigure = headers.map(
    (_, i) => rows.length > 0 && rows.every((row) => /^[\d.,]*( ?%| s)?$/.test(row[i] ?? '')),
  );
  const format = (line: readonly string[]): string =>
    widths
      .map((wide, i) => {
        const space = ' '.repeat(wide - width(line[i] ?? ''));
        return isFigure[i] ? `${space}${line[i] ?? ''}` : `${line[i] ?? ''}${space}`;
      })
      .join('  ')
      .trimEnd();
  return [format(headers), widths.map((wide) => '─'.repeat(wide)).join('  '), ...rows.map(format)].join('\n');
}

/** 12,345 whatever the locale of the machine. */
export const figure = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

const width = (text: string): number => [...text].length;

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
