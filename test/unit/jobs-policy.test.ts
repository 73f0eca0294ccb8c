import { describe, expect, it } from 'vitest';
import { judge } from '../../src/jobs/redis.ts';
import { consequenceOf, probeAfterMs } from '../../src/jobs/schedule.ts';
import { Cancelled, ConfigError, RetryLater, StopStream } from '../../src/model/errors.ts';

const MINUTE = 60_000;
const refused = (status: number) => new StopStream('no', { answer: { status, code: 'x', message: 'no' } });

describe('the consequence of a run', () => {
  it('is the next run by schedule, or immediately after an interruption', () => {
    expect(consequenceOf(undefined, 3)).toEqual({ kind: 'go on' });
    expect(consequenceOf(new Cancelled('interrupted'), 3)).toEqual({ kind: 'resume' });
  });

  it('is to park the source if the key is refused, otherwise the stream', () => {
    for (const status of [401, 403])
      expect(consequenceOf(refused(status), 0)).toMatchObject({ kind: 'park', whole: true });
    for (const status of [400, 404, 422]) {
      expect(consequenceOf(refused(status), 0)).toMatchObject({ kind: 'park', whole: false });
    }
    // A frozen schema is not an answer of the service.
    expect(consequenceOf(new StopStream('frozen'), 0)).toMatchObject({ kind: 'park', whole: false });
  });

  it('is a retry, later each time and never before the service allows it', () => {
    const waits = [0, 1, 2, 50].map((failures) => consequenceOf(new RetryLater('away'), failures));
    const after = waits.map((each) => (each.kind === 'retry' ? each.afterMs / MINUTE : undefined));
    expect(after).toEqual([0.5, 1, 2, 15]);
    expect(consequenceOf(new RetryLater('slow', { afterMs: 2 * MINUTE }), 0)).toEqual({
      kind: 'retry',
      afterMs: 2 * MINUTE,
    });
    expect(consequenceOf(new ConfigError('no such user'), 0).kind).toBe('retry');
  });

  it('is a longer interval for a parked stream: a quarter of an hour, then six hours', () => {
    expect([0, 1, 2, 20].map((probes) => probeAfterMs(probes) / MINUTE)).toEqual([15, 30, 60, 360]);
  });
});

describe('the required version of Redis', () => {
  const info = (version: string, policy?: string) =>
    `# Server\r\nredis_version:${version}\r\n${policy ? `maxmemory_policy:${policy}\r\n` : ''}`;

  it.each([['6.2.0'], ['7.0.15'], ['10.1.2']])('admits %s', (version) => {
    expect(() => judge('Redis', info(version, 'noeviction'))).not.toThrow();
    expect(() => judge('Redis', info(version))).not.toThrow();
  });

  it('excludes an old one, with advice', () => {
    expect(() => judge('Redis at r:1', info('6.0.16', 'noeviction'))).toThrow(
      'Redis at r:1 has version 6.0.16, which is too old',
    );
  });
});
