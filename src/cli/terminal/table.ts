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
