import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Queryable } from '../../src/cursor/database/index.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { dump } from './dump.ts';
import { filesIn, queryDuckdb } from './lake-readers.ts';
import type { Sandbox } from './odd-service/service.ts';
import type { TestRedis } from './redis.ts';

/** Values that must not leak, each in a unique form. */
export const CANARIES = {
  apiKey: 'canary-api-key-7f3a',
  databasePassword: 'canary-db-password-7f3a',
  redisPassword: 'canary-redis-password-7f3a',
  salt: 'canary-salt-of-hashes-7f3a',
  httpToken: 'canary-http-token-7f3a',
  linkPassword: 'canary-link-password-7f3a',
  ip: '203.0.113.77',
  email: 'canary-7f3a@person.example',
} as const;

export type Canary = keyof typeof CANARIES;

/** A text that was written or printed, and where. */
export interface Trace {
  place: string;
  text: string;
}

/** Every canary in every trace, as `canary in place`, except allowed pairs. */
export function found(
  traces: readonly Trace[],
  allowed: Readonly<Partial<Record<Canary, readonly RegExp[]>>>,
): string[] {
  const hits = traces.flatMap(({ place, text }) =>
    (Object.keys(CANARIES) as Canary[])
      .filter((canary) => text.includes(CANARIES[canary]) || text.includes(encodeURIComponent(CANARIES[canary])))
      .filter((canary) => !allowed[canary]?.some((where) => where.test(place)))
      .map((canary) => `${canary} in ${place}`),
  );
  return [...new Set(hits)].sort();
}

/** One event with personal data, and one that is unusable. */
export function plantCanaries({ service }: Sandbox): void {
  const [lead] = service.events('leads');
  const [click] = service.events('clicks');
  if (!lead || !click) throw new Error('the sandbox is empty');
  const person = {
    ip: CANARIES.ip,
    click: { ...(lead.click as JsonObject), ip: CANARIES.ip },
    link: { ...(lead.link as JsonObject), password: CANARIES.linkPassword },
    customer: { id: 'cus_canary', name: 'Ada', email: CANARIES.email },
  };
  service.add('leads', { ...lead, ...person, eventId: 'canary' });
  service.add('clicks', {
    ...click,
    ip: CANARIES.ip,
    click: { ...(click.click as JsonObject), id: 'canary', ip: CANARIES.ip },
  });
  const { timestamp: _, ...timeless } = lead;
  service.add('leads', { ...timeless, ...person, eventId: 'of-no-use' });
}

/** The database URL with a user whose password is a canary. The role remains on the run's server. */
export async function canaryUrl(db: Queryable, databaseUrl: string): Promise<string> {
  const url = new URL(databaseUrl);
  url.username = `canary_${process.pid}`;
  url.password = CANARIES.databasePassword;
  await db.query({ text: `create role ${url.username} superuser login password '${CANARIES.databasePassword}'` });
  return url.href;
}

/** All files below a folder as text; Parquet is decoded. */
export async function filesAsText(root: string): Promise<Trace[]> {
  return Promise.all(
    (await filesIn(root)).map(async (name) => {
      const file = join(root, name);
      const rows = file.endsWith('.parquet') ? await queryDuckdb(`select t::varchar as row from '${file}' t`) : [];
      const bytes = (await readFile(file)).toString('latin1');
      return { place: `file ${name}`, text: [bytes, ...rows.map(({ row }) => row)].join('\n') };
    }),
  );
}

/** Everything in a database, table by table. */
export async function tablesAsText(db: Queryable): Promise<Trace[]> {
  return (await dump(db)).split('\n').map((line) => ({ place: `table ${line.split(' ')[0]}`, text: line }));
}

const READ: Readonly<Record<string, readonly string[]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  list: ['LRANGE', '0', '-1'],
  set: ['SMEMBERS'],
  zset: ['ZRANGE', '0', '-1'],
  stream: ['XRANGE', '-', '+'],
};

/** Everything in Redis: queues, schedules, payloads. */
export async function redisAsText(redis: TestRedis): Promise<Trace[]> {
  const keys = (await redis.command('KEYS', '*')) as string[];
  return Promise.all(
    keys.map(async (key) => {
      const [name = 'DUMP', ...rest] = READ[String(await redis.command('TYPE', key))] ?? [];
      return { place: 'redis', text: `${key} ${JSON.stringify(await redis.command(name, key, ...rest))}` };
    }),
  );
}
