import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { moveCursor } from '../../src/sync/maintain/move-cursor.ts';
import { syncAllDone } from '../support/engine.ts';
import { startControlRoom } from '../support/http-room.ts';
import { freshDatabase } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { workerConfig } from '../support/workers.ts';
import { type Visit, visit } from './browser.ts';

export type OperatorScene = Awaited<ReturnType<typeof openOperatorScene>>;

export const TOKEN = 'a-token-of-the-tests';
/** How far behind every stream is when the worker starts, and the length of the history. */
export const BEHIND_DAYS = 3;
export const DAYS = 12;

/**
 * What an operator needs before signing in: a running worker on the sandbox, Redis, Postgres and a real
 * browser. With `isRefused` the service refuses the worker's requests, as after a plan has expired.
 */
export async function openOperatorScene({ isRefused }: { isRefused: boolean }) {
  const [home, redis, sandbox] = await Promise.all([
    freshDatabase(),
    startRedis(),
    smallSandbox({ rows: { clicks: 500, leads: 60, sales: 40 }, days: DAYS }),
  ]);
  const config = workerConfig({
    stateUrl: home.url,
    queueUrl: redis.url,
    sandboxes: { main: sandbox },
    stream: { maxLag: '1h' },
    rest: { http: { port: 0, token: TOKEN } },
  });
  for (const source of Object.values(config.sources)) source.since = new Date(Date.now() - 6 * DAY_MS).toISOString();
  await syncAllDone(config);
  await moveBack(config);
  if (isRefused) sandbox.service.traits = { forbidden: 'plan' };
  const room = await startControlRoom(config);
  const seen = await visit(room.url);
  return {
    ...{ sandbox, redis, seen },
    async close() {
      await seen.context.close();
      await room.close();
      await home.drop();
    },
  };
}

const moveBack = (config: Config): Promise<void> =>
  withSyncApp({ config, log: silentLog }, async ({ state, sinks }) => {
    for (const stream of ['clicks', 'leads', 'sales'] as const) {
      const feed = { source: 'main', stream, sink: 'warehouse' };
      const to = Date.now() - BEHIND_DAYS * DAY_MS;
      await moveCursor({ state, sinks, holder: 'test' }, feed, { to, force: false });
    }
  });

export async function signIn({ page }: Visit): Promise<void> {
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Source main' }).waitFor();
}
