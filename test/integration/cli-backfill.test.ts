import { describe, expect, it } from 'vitest';
import { DAY_MS } from '../../src/model/window.ts';
import { type Finished, longLines } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { DOCUMENTS } from '../support/json-documents.ts';

/** A backfill as an operator sees it, with the built binary: the requested range, and how much of it is certified. */

const { sandbox, run: tributary } = await commandsOn({ rows: { clicks: 400, leads: 60, sales: 60 }, days: 100 });

const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const day = (ago: number): string => new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
const OLDER = ['--from', day(80), '--to', day(60)];

const backfill = (...args: string[]): Promise<Finished> => tributary('backfill', 'clicks', ...args);

describe('backfill', () => {
  it('--dry-run prices it and says that --to is exclusive; --plan is an alias', async () => {
    const priced = await backfill(...OLDER, '--dry-run');
    expect(priced).toMatchObject({ code: 0, stderr: '' });
    expect(priced.stdout).toContain(`estimate for ${day(80)} 00:00 to ${day(60)} 00:00 UTC (exclusive)`);
    expect(priced.stdout).toMatch(/^main\/clicks +1 +0% /m);
    expect((await backfill(...OLDER, '--plan')).stdout.split('\n')[0]).toBe(priced.stdout.split('\n')[0]);
    const { stdout: clipped } = await backfill('--from', day(3), '--to', day(-1), '--dry-run');
    expect(clipped).toMatch(/^up to \S+ \S+: syncs read newer events once they have settled$/m);
    expect(priced.stdout).not.toContain('younger');
    expect(await backfill('--from', day(3), '--to', day(-2), '--dry-run')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('lies in the future'),
    });
    const { stdout: help } = await tributary('backfill', '--help');
    expect(help).toContain('--dry-run');
    expect(help).not.toContain('--plan');
  });

  it('reports the requested range and its certified share, not the watermark', async () => {
    expect(await tributary('sync', 'clicks')).toMatchObject({ code: 0 });
    const { code, stdout } = await backfill(...OLDER);
    expect([code, longLines(stdout)]).toEqual([0, []]);
    expect(stdout.split('\n')[0]).toBe(`${day(80)} 00:00 to ${day(60)} 00:00 UTC (exclusive)`);
    expect(stdout).toMatch(/^stream +read +new +changed +same +requests +certified$/m);
    expect(stdout).toMatch(/^main\/clicks .* 100%$/m);
    const empty = ['--from', day(300), '--to', day(200), '--json'];
    type Cost = { streams: Array<{ requests: number }> };
    const requestsOf = ({ stdout }: Finished): number => (JSON.parse(stdout) as Cost).streams[0]?.requests ?? 0;
    const estimate = requestsOf(await backfill(...empty, '--dry-run'));
    const took = requestsOf(await backfill(...empty));
    expect(Math.max(estimate / took, took / estimate)).toBeLessThan(2);
    expect((await backfill(...OLDER, '--force', '--dry-run')).stdout).toMatch(/^main\/clicks +1 +100% /m);
    expect(stdout).not.toContain('complete through');
    expect(stdout.replace(/\n {9}/g, ' ')).toContain(
      `before since, ${day(30)} 00:00: status and coverage show it as also complete`,
    );
  });

  it('reports how far it could read, as text and as JSON', async () => {
    const { code, stdout } = await backfill('--from', day(3), '--to', day(-1));
    expect(code).toBe(0);
    expect(stdout.split('\n')[0]).toBe(`${day(3)} 00:00 to ${day(-1)} 00:00 UTC (exclusive)`);
    expect(stdout.replace(/\n {9}/g, ' ')).toMatch(/note {5}main\/clicks: read up to \S+ \S+: syncs read newer events/);
    const json = JSON.parse((await backfill('--from', day(3), '--to', day(-1), '--json')).stdout) as {
      streams: Array<{ from: string; to: string; certified: number }>;
    };
    expect(DOCUMENTS.backfill?.safeParse(json).error).toBeUndefined();
    expect(json.streams).toMatchObject([{ from: `${day(3)}T00:00:00.000Z`, certified: 1, notCertified: [] }]);
    expect(Date.parse(json.streams[0]?.to ?? '')).toBeLessThan(Date.now());
  });

  it('reports which part is not certified and why, and never rounds up to 100%', async () => {
    sandbox.service.traits = { sortOrder: 'reversed' };
    const { code, stdout } = await backfill('--from', day(82), '--to', day(60));
    sandbox.service.traits = {};
    expect(code).toBe(4);
    const share = Number(/^main\/clicks .* ([\d.]+)%$/m.exec(stdout)?.[1]);
    // Twenty of twenty-two days were already certified.
    expect(share).toBeGreaterThanOrEqual(90.9);
    expect(share).toBeLessThan(100);
    expect(stdout.replace(/\n {9}/g, ' ')).toMatch(
      new RegExp(`not certified: ${day(82)} 00:00 to .* UTC \\(exclusive\\): .{20}`),
    );
    const { stdout: json } = await backfill('--from', day(82), '--to', day(60), '--json');
    expect(JSON.parse(json)).toMatchObject({ streams: [{ certified: 1, notCertified: [] }] });
  });

  it('lists a queued backfill with its range and its certified share', async () => {
    expect(await backfill('--from', day(90), '--to', day(70), '--queue')).toMatchObject({ code: 0 });
    const { stdout } = await tributary('backfills');
    expect(longLines(stdout)).toEqual([]);
    // Days 82 to 70: twelve of twenty days are certified, the others wait for a worker.
    expect(stdout).toMatch(new RegExp(`main/clicks +${day(90)} +${day(70)} +queued .*60%$`, 'm'));
  });
});
