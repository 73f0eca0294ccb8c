import { afterAll, expect, it } from 'vitest';
import { type HttpRoom, ROOM_TOKEN, startHttpRoom } from '../support/http-room.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { describeBackends, queueUrl, until, workerConfig } from '../support/workers.ts';

interface Board {
  queues: Array<{
    name: string;
    counts: Record<string, number>;
    jobs: Array<{ name: string; data: unknown; returnValue: unknown }>;
  }>;
}

describeBackends('the view of the queues on %s', (backend) => {
  let database: TestDatabase;
  let room: HttpRoom;

  afterAll(async () => {
    await room.close();
    await database.drop();
  });

  it('shows the jobs without their payload, and is read-only', async () => {
    database = await freshDatabase();
    const sandbox = await smallSandbox({ rows: { clicks: 10, leads: 10, sales: 10 } });
    const url = await queueUrl(backend);
    room = await startHttpRoom(
      workerConfig({ stateUrl: database.url, queueUrl: url, sandboxes: { main: sandbox }, every: '1h' }),
    );
    const board = () => room.json<Board>('/queues/api/queues?activeQueue=sync&status=delayed');
    await until('the next turns are planned', async () => (await board()).queues[0]?.counts.delayed === 3);
    const { queues } = await board();
    expect(queues.map(({ name }) => name)).toEqual(['sync', 'backfill']);
    expect(queues[0]?.jobs.map(({ name }) => name).sort()).toEqual(['main/clicks', 'main/leads', 'main/sales']);
    for (const { data, returnValue } of queues[0]?.jobs ?? [])
      expect([data, returnValue]).toEqual(['(hidden)', '(hidden)']);
    const { schedulers } = await room.json<{ schedulers: object[] }>('/queues/api/job-schedulers');
    expect(schedulers).toHaveLength(3);
    expect(JSON.stringify(schedulers)).not.toContain('"data"');

    const headers = { authorization: `Bearer ${ROOM_TOKEN}` };
    for (const [path, status] of [
      ['pause', 405],
      ['empty', 405],
      ['obliterate', 405],
      ['retry/failed', 405],
      ['nothing', 404],
    ] as const) {
      const put = await fetch(`${room.url}/queues/api/queues/sync/${path}`, { method: 'PUT', headers });
      expect([path, put.status]).toEqual([path, status]);
    }
    expect((await room.send('POST', '/queues/api/queues/sync/add', {})).status).toBe(405);
    expect((await board()).queues[0]?.counts.delayed).toBe(3);
  });

  it('loads nothing from other servers, and nothing that the policy forbids', async () => {
    const page = await (await room.get('/queues')).text();
    expect(page).toContain('<div id="root">');
    expect(page.match(/(?:src|href)="(?:https?:)?\/\/[^"]*"| style="|<style|<script>/g)).toBeNull();
    const [, script = ''] = /src="(static\/js\/main[^"]+)"/.exec(page) ?? [];
    expect((await room.get(`/queues/${script}`)).status).toBe(200);
  });
});
