import { withSyncApp } from '../../src/app.ts';
import type { Config } from '../../src/config-schema.ts';
import { holderOf } from '../../src/cursor/leases.ts';
import { syncAll } from '../../src/sync/sync-all.ts';
import { silentLog } from './silent-log.ts';

/** One sync in a process of its own: `sync-child.ts CONFIG`. Prints a line when it begins and one when it is done. */
const config = JSON.parse(process.argv[2] ?? '{}') as Config;
const signal = new AbortController().signal;
const outcomes = await withSyncApp({ config, log: silentLog }, ({ state, sinks, jobs }) => {
  process.stdout.write('begins\n');
  return syncAll({ state, sinks, log: silentLog, signal, holder: holderOf('sync'), onProgress: () => {} }, jobs);
});
process.stdout.write(`${outcomes.map(({ report, fault }) => report?.state ?? fault?.message).join(' ')}\n`);
