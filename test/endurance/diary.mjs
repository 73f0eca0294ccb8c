import { appendFileSync } from 'node:fs';

/**
 * Preloaded (`node --expose-gc --import`): every few seconds it records figures known only to the process. The
 * heap is measured after a collection, so that growth means retained memory.
 */
const EVERY_MS = 5000;
const file = `${process.env.ENDURE_DIARY}/${process.pid}.ndjson`;

function countByName(names) {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

setInterval(() => {
  const { rss } = process.memoryUsage();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  const resources = countByName(process.getActiveResourcesInfo());
  appendFileSync(file, `${JSON.stringify({ at: Date.now(), rss, heapUsed, external, resources })}\n`);
}, EVERY_MS).unref();
