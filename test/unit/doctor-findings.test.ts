import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { checkDisk, checkNode, diskFinding } from '../../src/app/doctor.ts';
import { queueFindings } from '../../src/jobs/redis.ts';
import { ConfigError, findingOf, RetryLater, StopStream } from '../../src/model/errors.ts';
import { freshPlace, startProcess } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';

const GIB = 2 ** 30;
const levels = (findings: ReadonlyArray<{ level: string }>): string[] => findings.map(({ level }) => level);

describe('the machine', () => {
  it.each([
    ['v20.19.0', 'ok'],
    ['v24.1.0', 'ok'],
    ['v20.18.3', 'fault'],
    ['v18.20.0', 'fault'],
  ])('Node %s: %s', (version, level) => {
    expect(checkNode(version).level).toBe(level);
  });

  it.each([
    [3 * GIB, 'ok'],
    [GIB, 'note'],
    [GIB / 8, 'fault'],
  ])('%d bytes free: %s', (free, level) => {
    expect(diskFinding('.tributary/', free).level).toBe(level);
  });

  it('the disk of a folder that does not exist yet is that of its parents', async () => {
    expect((await checkDisk('no/such/folder')).says).toMatch(/^\d+\.\d GiB free for no\/such\/folder$/);
  });
});

it('an error names who can fix it, and a bug is rethrown', () => {
  const fixers = [new ConfigError('x'), new StopStream('x'), new RetryLater('x')].map(
    (fault) => findingOf('s', fault).fixBy,
  );
  expect(fixers).toEqual(['config', 'service', 'later']);
  expect(() => findingOf('s', new TypeError('a bug'))).toThrow('a bug');
});

describe('a real Redis', () => {
  it('is judged by what it reports', async () => {
    const port = await freePort();
    const server = startProcess(
      'redis-server',
      ['--port', String(port), '--save', '', '--bind', '127.0.0.1'],
      (await freshPlace()).dir,
      {
        PATH: process.env.PATH ?? '',
      },
    );
    await server.saw('Ready to accept connections');
    const redis = new Redis(port, '127.0.0.1');
    const judged = async (): Promise<string[]> => levels(queueFindings('Redis', await redis.info()));
    expect(await judged()).toEqual(['ok', 'ok', 'note']);
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.config('SET', 'appendonly', 'yes');
    expect(await judged()).toEqual(['ok', 'fault', 'ok']);
    expect(levels(queueFindings('Redis', 'redis_version:5.0.7\r\n'))).toEqual(['fault', 'ok', 'note']);
    redis.disconnect();
    server.child.kill('SIGKILL');
    await server.done;
  });
});
