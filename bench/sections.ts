import type { Section } from './support/report.ts';

/** By the letter for `--only`. Loaded on demand: each imports its own servers and writers. */
export const SECTIONS: Readonly<Record<string, () => Promise<Section>>> = {
  a: async () => (await import('./sections/budget.ts')).budget,
  b: async () => (await import('./sections/requests.ts')).requests,
  c: async () => (await import('./sections/throughput.ts')).throughput,
  d: async () => (await import('./sections/stages.ts')).stages,
  e: async () => (await import('./sections/memory.ts')).memory,
  f: async () => (await import('./sections/growth.ts')).growth,
  g: async () => (await import('./sections/freshness.ts')).freshness,
  h: async () => (await import('./sections/footprint.ts')).footprint,
  i: async () => (await import('./sections/idle.ts')).idle,
  j: async () => (await import('./sections/holdings.ts')).holdings,
};
