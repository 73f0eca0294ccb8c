import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withService } from '../service/start.ts';
import { runMeasured } from './commands.ts';
import { configText } from './engine.ts';
import { withHome } from './home.ts';
import { cpuSecondsOf, serverCpuSeconds, serverOf } from './proc.ts';
import type { Size } from './report.ts';

/** First syncs of histories of ten times the length each, by the command line in separate processes. */
export interface Load {
  sink: 'Postgres' | 'Parquet';
  rows: number;
  requests: number;
  seconds: number;
  peakBytes: number;
  /** CPU seconds of the sync and of Postgres, which holds a lake's state, too. */
  cpuSeconds: number;
  serverCpuSeconds: number;
  /** Of the service, which runs on the same machine. */
  serviceCpuSeconds: number;
}

const ROWS: Readonly<Record<Size, readonly number[]>> = {
  quick: [1000, 10_000],
  whole: [10_000, 100_000, 1_000_000],
};

let done: Promise<Load[]> | undefined;

/** Memory and growth use the same syncs, to load a million rows only once. */
export function loadsOf(size: Size): Promise<Load[]> {
  done ??= loadAll(ROWS[size]);
  return done;
}

async function loadAll(sizes: readonly number[]): Promise<Load[]> {
  const loads: Load[] = [];
  for (const rows of sizes) {
    loads.push(await load('Postgres', rows));
    loads.push(await load('Parquet', rows));
  }
  return loads;
}

const load = (sink: Load['sink'], rows: number): Promise<Load> =>
  withHome(({ dir, url, db }) =>
    withService(rows, async ({ pid, ...service }) => {
      const config = join(dir, 'tributary.yaml');
      const sinks = {
        Postgres: { warehouse: { type: 'postgres' } },
        Parquet: { lake: { type: 'parquet', path: join(dir, 'lake') } },
      }[sink];
      writeFileSync(config, configText({ ...service, url, source: 'main', sinks }));
      const [backend] = await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
      const server = serverOf(backend?.pid);
      const ready = cpuSecondsOf(pid) ?? Number.NaN;
      const before = serverCpuSeconds(server);
      const { stdout, ...measured } = await runMeasured(['sync', 'clicks', '--config', config, '--json']);
      const [{ new: came, requests }] = JSON.parse(stdout).streams as [{ new: number; requests: number }];
      if (came !== rows) throw new Error(`${rows} rows were there, and ${came} came`);
      return {
        ...{ sink, rows, requests, ...measured, serverCpuSeconds: serverCpuSeconds(server) - before },
        serviceCpuSeconds: (cpuSecondsOf(pid) ?? Number.NaN) - ready,
      };
    }),
  );
