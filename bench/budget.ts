import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane } from '../src/api/slots.ts';
import { connect } from '../src/cursor/database.ts';
import { openEmbedded } from '../src/cursor/embedded.ts';
import { migrate } from '../src/cursor/migrate.ts';
import { MIGRATIONS } from '../src/cursor/migrations.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import { budgetUse, countOf, kill, laneShare, startProcesses } from '../test/support/budget-processes.ts';
import { silentLog } from '../test/support/silent-log.ts';

/** One budget over processes, against a service that counts sliding seconds: `npx tsx bench/budget.ts [seconds]`. */

const seconds = Number(process.argv[2] ?? 15);
/** A process that starts compiles what it runs: its first requests leave late. */
const WARM_UP_MS = 3000;
const dir = await mkdtemp(join(tmpdir(), 'tributary-bench-'));
const server = await openEmbedded({ dir, log: silentLog });
const db = connect({ url: server.url, max: 2 });
await migrate(db, MIGRATIONS, { schema: 'tributary' });

const commits = async (): Promise<number> => {
  await sleep(1500); // The server adds up its figures once a second.
  const [row] = await db.query<{ n: number }>({
    text: 'select xact_commit::float8 as n from pg_stat_database where datname = current_database()',
  });
  return row?.n ?? 0;
};

const lines = [
  '| per second | processes | budget use | 429s | backfill | statements a request |',
  '|---|---|---|---|---|---|',
];
for (const perSecond of [2, 4, 8]) {
  for (const processes of [1, 4]) {
    const apiKey = `bench-${perSecond}-${processes}`;
    const sandbox = await startSandbox({
      apiKey,
      requestsPerSecond: perSecond,
      rows: { clicks: 50, leads: 50, sales: 50 },
    });
    const { baseUrl } = sandbox;
    const lanesOf = (i: number): Lane[] => (processes === 1 ? ['fresh', 'backfill'] : [i < 3 ? 'fresh' : 'backfill']);
    const options = Array.from({ length: processes }, (_, i) => ({
      ...{ databaseUrl: server.url, baseUrl, apiKey, requestsPerSecond: perSecond, lanes: lanesOf(i) },
    }));
    const before = await commits();
    const children = await startProcesses(options);
    await sleep(WARM_UP_MS);
    const from = sandbox.service.log.entries.length;
    await sleep(seconds * 1000);
    await kill(children);
    const all = sandbox.service.log.entries;
    const log = all.slice(from);
    const statements = (await commits()) - before;
    const figures = [budgetUse(log, perSecond).toFixed(3), countOf(log, 429), laneShare(log, 'backfill').toFixed(2)];
    lines.push(`| ${[perSecond, processes, ...figures, (statements / all.length).toFixed(1)].join(' | ')} |`);
    await sandbox.close();
  }
}
process.stdout.write(`${lines.join('\n')}\n`);
await db.close();
await server.close();
await rm(dir, { recursive: true, force: true });
