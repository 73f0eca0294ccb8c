import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { SECTIONS } from './sections.ts';
import { readOptions } from './support/options.ts';
import { intoDocument, toMarkdown } from './support/report.ts';

/**
 * Everything that Tributary claims about its speed, measured in one run: `npm run bench -- [--only c,d] [--quick] [--write]`. How each
 * section measures is in docs/performance.md; `--write` puts the figures there.
 */
const DOCUMENT = 'docs/performance.md';
const { ids, size, isWritten } = readOptions(process.argv.slice(2), Object.keys(SECTIONS));

for (const id of ids) {
  const section = await SECTIONS[id]?.();
  if (!section) continue;
  process.stdout.write(`\n(${id}) ${section.title}\n\n`);
  const before = loadavg()[0] ?? 0;
  const text = `${toMarkdown(await section.run(size))}\n\n${machine(before)}`;
  process.stdout.write(`${text}\n`);
  if (isWritten) writeFileSync(DOCUMENT, intoDocument(readFileSync(DOCUMENT, 'utf8'), id, text));
}

/** Whose figures these are: a load beyond the number of cores says that they were not alone. */
function machine(before: number): string {
  const load = `load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after on ${availableParallelism()} cores`;
  return `(Node ${process.versions.node}, ${process.platform} ${process.arch}, ${load}.)`;
}
