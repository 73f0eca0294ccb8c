import type { Places } from './places.ts';
import { openService, SERVERS, type ServerName } from './service.ts';
import type { Python, Tool } from './tool.ts';
import { type Watched, watch } from './watched.ts';

export interface Setting {
  server: ServerName;
  rows: number;
  /** null: no limit. */
  perSecond: number | null;
}

export interface Figures {
  lost: number;
  doubled: number;
  /** Of both syncs. */
  requests: number;
  refused: number;
  /** Of the first sync, from the start of the program to its end. */
  rowsPerSecond: number;
  /** Of the first sync, per million rows. */
  cpuSeconds: number;
  /** NaN without /proc. */
  peakMb: number;
}

export interface Result {
  tool: Tool;
  setting: Setting;
  /** Absent if a sync failed; then `failure` says how. */
  figures?: Figures;
  failure?: string;
}

/** Runs a first sync of everything, then a second one after new rows, and checks the destination. */
export async function measure(tool: Tool, setting: Setting, places: Places, python: Python): Promise<Result> {
  const { rows, perSecond, server } = setting;
  const place = await places.fresh();
  const service = await openService({ rows, perSecond, traits: SERVERS[server] });
  try {
    const job = { place, service, perSecond, python };
    const before = service.truth().size;
    const runs: Watched[] = [];
    for (const which of ['first', 'second']) {
      if (which === 'second') service.arrivals();
      const run = await watch(await tool.sync(job));
      if (run.failed) return { tool, setting, failure: `its ${which} sync failed: ${run.said}` };
      runs.push(run);
    }
    const ids = await tool.ids(job);
    const there = new Set(ids);
    const figures = {
      lost: [...service.truth()].filter((id) => !there.has(id)).length,
      doubled: ids.length - there.size,
      ...service.counts(),
      rowsPerSecond: before / (runs[0]?.seconds ?? Number.NaN),
      cpuSeconds: ((runs[0]?.cpuSeconds ?? Number.NaN) / before) * 1e6,
      peakMb: Math.max(...runs.map(({ peakMb }) => peakMb ?? Number.NaN)),
    };
    return { tool, setting, figures };
  } finally {
    await service.close();
  }
}
