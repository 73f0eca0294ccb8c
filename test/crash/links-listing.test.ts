import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { freshPlace } from '../support/cli.ts';
import { emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** The built program lists 300 links, 250 of them unclicked, at the plan's 1,200 requests a minute. */

const { db, url } = await forThisFile(emptyEngine());
const place = await freshPlace();
const sandbox = await smallSandbox({ quietLinks: 250, rows: { clicks: 300, leads: 10, sales: 5 } });
for (const { id } of sandbox.service.links.slice(50)) sandbox.service.deleteLink(id);
const { baseUrl, apiKey } = sandbox;
const config = await place.config(
  JSON.stringify({
    sources: { main: { baseUrl, apiKey, plan: 'business', links: { every: '1d' } } },
    sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: './lake' } },
    state: { url },
  }),
);

const truth = (): string[] =>
  sandbox.service.linkListing
    .all()
    .map(({ id }) => id)
    .sort();
const asked = (): number => sandbox.service.requests.filter(({ path }) => path === '/links').length;

async function table(): Promise<{ here: string[]; gone: string[]; listed: string[] }> {
  const rows = await db.query<{ id: string; gone: boolean; at: string }>({
    text: `select link_id as id, _missing_since is not null as gone, _listed_at::text as at from attribution.links order by 1`,
  });
  return {
    here: rows.filter(({ gone }) => !gone).map(({ id }) => id),
    gone: rows.filter(({ gone }) => gone).map(({ id }) => id),
    listed: [...new Set(rows.map(({ at }) => at))],
  };
}

/** Makes the change after so many more pages were requested. */
async function after(pages: number, change: () => void): Promise<void> {
  const from = asked();
  while (asked() < from + pages) await sleep(5);
  change();
}

it('is exact after one sync, without a 429, although links are created and deleted meanwhile', async () => {
  expect(truth()).toHaveLength(300);
  const listing = place.run(['sync', 'links', '--config', config, '--json']);
  const removed: string[] = [];
  await after(2, () => {
    for (const { id } of sandbox.service.linkListing
      .all()
      .filter(({ clicks }) => clicks === 0)
      .slice(30, 33)) {
      removed.push(id);
      sandbox.service.linkListing.remove(id);
    }
  });
  await after(1, () => void sandbox.service.linkListing.make());
  const { code, stdout } = await listing;
  expect({ code, state: JSON.parse(stdout).streams[0].state }).toEqual({ code: 0, state: 'done' });
  const { here, gone } = await table();
  expect(here).toEqual(truth());
  expect(gone).toEqual([]);
  expect(here.filter((id) => removed.includes(id))).toEqual([]);
  expect(sandbox.service.stats().byStatus).not.toHaveProperty('429');
  expect(asked()).toBeLessThanOrEqual(40);
});

it('keeps the previous listing when the process is killed', async () => {
  const before = await table();
  const [first] = sandbox.service.linkListing.all().filter(({ clicks }) => clicks === 0);
  sandbox.service.linkListing.remove(first?.id ?? '');
  const killed = place.start(['sync', 'links', '--config', config]);
  await after(5, () => killed.child.kill('SIGKILL'));
  await killed.done;
  expect(await table()).toEqual(before);
  const { code, text } = await place.run(['sync', 'links', '--config', config]);
  expect({ code, text }).toMatchObject({ code: 0 });
  const { here, gone } = await table();
  expect(here).toEqual(truth());
  expect(gone).toEqual([first?.id]);
  const runs = await place.run(['runs', '--config', config, '--json']);
  expect(JSON.parse(runs.stdout).runs.map(({ state }: { state: string }) => state)).toEqual([
    'done',
    'interrupted',
    'done',
  ]);
});

it('reports an unproven listing, keeps the previous one, and retries at the next sync', async () => {
  sandbox.service.traits = { flapping: 0.2 };
  const { code, text } = await place.run(['sync', 'links', '--config', config]);
  expect(code).toBe(4);
  expect(text).toMatch(/as of 2\d{3}-.*, not\s+proven:\s/);
  const { here } = await table();
  expect(here).toEqual(truth());
  sandbox.service.traits = {};
  const status = await place.run(['status', '--config', config]);
  expect(status.text).toMatch(/main\/links.*incomplete/);
});
