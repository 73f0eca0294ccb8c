/** What a section of the bench found, as tables and bars that people and `docs/performance.md` read alike. */
export interface Report {
  tables: readonly Table[];
  bars: readonly Bar[];
}

export interface Table {
  head: readonly string[];
  rows: ReadonlyArray<readonly Cell[]>;
}

export type Cell = string | number;

/** What was set out to be reached. Whether it was is computed, never written by hand. */
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

/** The quick form is for seeing that everything works; its figures say little. */
export type Size = 'quick' | 'whole';

export const isMet = ({ measured, least, most }: Bar): boolean =>
  (least === undefined || measured >= least) && (most === undefined || measured <= most);

/** Figures as people read them: three digits say enough. */
export const ratio = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : '?');
export const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
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

function barText(bar: Bar): string {
  const { says, measured, least, most } = bar;
  const wanted = [least !== undefined && `at least ${least}`, most !== undefined && `at most ${most}`].filter(Boolean);
  return `- ${says}: ${wanted.join(' and ')}; here ${ratio(measured)}: **${isMet(bar) ? 'met' : 'not met'}**`;
}

const marks = (id: string): [string, string] => [`<!-- bench ${id} -->`, `<!-- end of bench ${id} -->`];

/** The document with a section's figures between its marks. What stands around them stays. */
export function intoDocument(document: string, id: string, text: string): string {
  const [begin, end] = marks(id);
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no place for section ${id}: ${begin} … ${end}`);
  return `${document.slice(0, from + begin.length)}\n${text}\n${document.slice(to)}`;
}
