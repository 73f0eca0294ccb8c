import type { TestProject } from 'vitest/node';
import { findOrInstall } from './machine.ts';
import { startRedisServer } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Empty if there is no redis-server. */
    redisUrl: string;
  }
}

/** One Redis for the whole run; `freshRedis()` gives a test its own database. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const program = findOrInstall({
    programs: ['redis-server'],
    packages: ['redis-server'],
    elsewhere: 'macOS: brew install redis',
  });
  if (program === undefined) {
    project.provide('redisUrl', '');
    return undefined;
  }
  const server = await startRedisServer({ databases: '2000' });
  project.provide('redisUrl', server.url);
  return server.close;
}
