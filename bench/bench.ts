import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { SECTIONS } from './sections.ts';
import { readOptions } from './support/options.ts';
import { type Bar, barTable, intoDocument, toMarkdown } from './support/report.ts';

/**
 * Everything that Tributary claims about its speed, measured in one run: `npm run bench -- [--only c,d] [--quick] [--write]`. How each
 * section measures is in bench/results.md; `--write` puts the figures there.
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
  const [before, start] = [loadavg()[0] ?? 0, minutes()];
  const report = await section.run(size);
  bars.push(...report.bars.map((bar) => ({ ...bar, says: `(${id}) ${bar.says}` })));
  // Of a whole run, one table at its end has all bars.
  show(id, `${toMarkdown(isAll ? { ...report, bars: [] } : report)}\n\n${machine(before, minutes() - start)}`);
}
if (isAll) bars.push({ says: 'minutes of the whole bench', measured: minutes(), most: MOST_MINUTES });
if (bars.length > 0) {
  process.stdout.write('\nAll bars\n\n');
  show(isAll ? 'bars' : undefined, toMarkdown({ tables: [barTable(bars)], bars: [] }));
}

/** On the terminal, and in its place in the document where that is wanted. */
function show(place: string | undefined, text: string): void {
  process.stdout.write(`${text}\n`);
  if (isWritten && place) writeFileSync(DOCUMENT, intoDocument(readFileSync(DOCUMENT, 'utf8'), place, text));
}

/** Whose figures these are: a load beyond the number of cores says that they were not alone. */
function machine(before: number, took: number): string {
  const load = `load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after on ${availableParallelism()} cores`;
  return `(Node ${process.versions.node}, ${process.platform} ${process.arch}, ${load}, ${took.toFixed(1)} minutes.)`;
}
