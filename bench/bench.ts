import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { SECTIONS } from './sections.ts';
import { readOptions } from './support/options.ts';
import { type Bar, barTable, intoDocument, percent, toMarkdown } from './support/report.ts';

/**
 * Measures every claim about Tributary's speed in one run: `npm run bench -- [--only c,d] [--quick] [--write]`. bench/results.md
 * describes the method of each section; `--write` puts the figures there.
 */
const DOCUMENT = 'bench/results.md';
const MOST_MINUTES = 12;
const { ids, size, isWritten } = readOptions(process.argv.slice(2), Object.keys(SECTIONS));

const bars: Bar[] = [];
const began = performance.now();
const minutes = (): number => (performance.now() - began) / 60_000;

const isAll = ids.length === Object.keys(SECTIONS).length && size === 'whole';
for (const id of ids) {
  const section = await SECTIONS[id]?.();
  if (!section) continue;
  process.stdout.write(`\n(${id}) ${section.title}\n\n`);
  const [before, start, stolen] = [loadavg()[0] ?? 0, minutes(), stolenSeconds()];
  const report = await section.run(size);
  bars.push(...report.bars.map((bar) => ({ ...bar, says: `(${id}) ${bar.says}` })));
  // After a complete run, a table of all bars.
  show(
    id,
    `${toMarkdown(isAll ? { ...report, bars: [] } : report)}\n\n${machine(before, minutes() - start, stolenSeconds() - stolen)}`,
  );
}
if (isAll) bars.push({ says: 'minutes of the whole bench', measured: minutes(), most: MOST_MINUTES });
if (bars.length > 0) {
  process.stdout.write('\nAll bars\n\n');
  show(isAll ? 'bars' : undefined, toMarkdown({ tables: [barTable(bars)], bars: [] }));
}

/** Prints to the terminal and, with a place, into the document. */
function show(place: string | undefined, text: string): void {
  process.stdout.write(`${text}\n`);
  if (isWritten && place) writeFileSync(DOCUMENT, intoDocument(readFileSync(DOCUMENT, 'utf8'), place, text));
}

/** A load above the number of cores, or stolen time, means that other processes or virtual machines slowed this run down. */
function machine(before: number, took: number, stolen: number): string {
  const load = `load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after on ${availableParallelism()} cores`;
  const share = percent(stolen / (took * 60 * availableParallelism()));
  return `(Node ${process.versions.node}, ${process.platform} ${process.arch}, ${load}, ${share} of their time stolen by the host, ${took.toFixed(1)} minutes.)`;
}

/** CPU time that the host gave to other virtual machines, in ticks of 10 ms: the ninth field of the first line. */
function stolenSeconds(): number {
  if (process.platform !== 'linux') return 0;
  return Number(readFileSync('/proc/stat', 'utf8').split(/\s+/, 9)[8]) / 100;
}
