import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { budget } from './sections/budget.ts';
import { footprint } from './sections/footprint.ts';
import { freshness } from './sections/freshness.ts';
import { growth } from './sections/growth.ts';
import { memory } from './sections/memory.ts';
import { requests } from './sections/requests.ts';
import { stages } from './sections/stages.ts';
import { throughput } from './sections/throughput.ts';
import { intoDocument, type Section, toMarkdown } from './support/report.ts';

/**
 * Everything that Tributary claims about its speed, measured in one run: `npm run bench -- [--only c,d] [--quick] [--write]`. How each
 * section measures is in docs/performance.md; `--write` puts the figures there.
 */
const SECTIONS: readonly Section[] = [budget, requests, throughput, stages, memory, growth, freshness, footprint];
const DOCUMENT = 'docs/performance.md';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: SECTIONS.map(({ id }) => id).join() },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const unknown = wanted.filter((id) => !SECTIONS.some((section) => section.id === id));
if (unknown.length > 0) throw new Error(`no section ${unknown.join(', ')}: ${SECTIONS.map(({ id }) => id).join(', ')}`);
if (values.quick && values.write) throw new Error('quick figures are no figures for a document');

for (const { id, title, run } of SECTIONS.filter((section) => wanted.includes(section.id))) {
  process.stdout.write(`\n(${id}) ${title}\n\n`);
  const before = loadavg()[0] ?? 0;
  const text = `${toMarkdown(await run(values.quick ? 'quick' : 'whole'))}\n\n${machine(before)}`;
  process.stdout.write(`${text}\n`);
  if (values.write) writeFileSync(DOCUMENT, intoDocument(readFileSync(DOCUMENT, 'utf8'), id, text));
}

/** Whose figures these are: a load beyond the number of cores says that they were not alone. */
function machine(before: number): string {
  const load = `load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after on ${availableParallelism()} cores`;
  return `(Node ${process.versions.node}, ${process.platform} ${process.arch}, ${load}.)`;
}
