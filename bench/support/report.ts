/** The results of a section, as tables and bars for the terminal and `bench/results.md`. */
export interface Report {
  tables: readonly Table[];
  bars: readonly Bar[];
}

export interface Table {
  head: readonly string[];
  rows: ReadonlyArray<readonly Cell[]>;
}

export type Cell = string | number;

/** A goal. Whether it is met is computed, never written by hand. */
export interface Bar {
  says: string;
  measured: number;
  least?: number;
  most?: number;
}

export interface Section {
  title: string;
  run(size: Size): Promise<Report>;
}

/** The quick form checks that everything works; its figures mean little. */
export type Size = 'quick' | 'whole';

export const isMet = ({ measured, least, most }: Bar): boolean =>
  (least === undefined || measured >= least) && (most === undefined || measured <= most);

/** Figures with three digits. */
export const ratio = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : '?');
export const percent = (share: number): string => `${(share * 100).toFixed(0)}%`;
export const count = (value: number): string => Math.round(value).toLocaleString('en');

export function toMarkdown({ tables, bars }: Report): string {
  return [...tables.map(tableText), ...(bars.length > 0 ? [bars.map(barText).join('\n')] : [])].join('\n\n');
}

function tableText({ head, rows }: Table): string {
  const isNumber = head.map((_, i) => rows.every((row) => /^[<≤]?\d/.test(String(row[i] ?? ''))));
  const line = (cells: readonly Cell[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), `|${isNumber.map((number) => (number ? '--:' : '---')).join('|')}|`, ...rows.map(line)].join(
    '\n',
  );
}

const wantedOf = ({ least, most }: Bar): string =>
  [least !== undefined && `at least ${least}`, most !== undefined && `at most ${most}`].filter(Boolean).join(' and ');
const outcomeOf = (bar: Bar): string => `**${isMet(bar) ? 'met' : 'not met'}**`;

const barText = (bar: Bar): string => `- ${bar.says}: ${wantedOf(bar)}; here ${ratio(bar.measured)}: ${outcomeOf(bar)}`;

/** All bars of a complete run as ratios: the measurement where the bar is 1; a bar of 0 unchanged. */
export const barTable = (bars: readonly Bar[]): Table => ({
  head: ['bar', 'wanted', 'here, where the bar is 1', 'outcome'],
  rows: bars.map((bar) => [
    bar.says,
    wantedOf(bar),
    ratio(bar.measured / (bar.least || bar.most || 1)),
    outcomeOf(bar),
  ]),
});

const marks = (id: string): [string, string] => [`<!-- bench ${id} -->`, `<!-- end of bench ${id} -->`];

/** The document with a section's figures between its marks; the rest is unchanged. */
export function intoDocument(document: string, id: string, text: string): string {
  const [begin, end] = marks(id);
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no place for section ${id}: ${begin} … ${end}`);
  return `${document.slice(0, from + begin.length)}\n${text}\n${document.slice(to)}`;
}
