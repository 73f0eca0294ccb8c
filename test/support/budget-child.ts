import type { Lane } from '../../src/api/budget.ts';
import { createClient } from '../../src/api/client.ts';
import { createEventsApi } from '../../src/api/events-api.ts';
import { createLimiter } from '../../src/api/limiter.ts';
import { openSharedBudgets } from '../../src/cursor/budgets.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { type ChildOptions, STREAM_OF } from './budget-processes.ts';
import { silentLog } from './silent-log.ts';

/** A process that uses all of the available budget, in one or several lanes, until it is killed: `budget-child.ts OPTIONS`. */
const options = JSON.parse(process.argv[2] ?? '{}') as ChildOptions;
const { databaseUrl, baseUrl, apiKey, lanes, requestsPerSecond, parallel = 4 } = options;
const shared = openSharedBudgets(connect({ url: databaseUrl, max: 2 }));
const limiter = createLimiter({ requestsPerSecond, budget: shared.of(apiKey, requestsPerSecond) });
const api = createEventsApi({ client: createClient({ baseUrl, apiKey }), limiter, log: silentLog });

async function keepAsking(lane: Lane): Promise<never> {
  const day = { start: Date.now() - 86_400_000, end: Date.now(), sortOrder: 'desc', page: 1, limit: 5 } as const;
  for (;;) await api.page({ ...day, stream: STREAM_OF[lane], filters: {} }, { lane });
}

process.stdout.write('ready\n');
await Promise.all(lanes.flatMap((lane) => Array.from({ length: parallel }, () => keepAsking(lane))));
