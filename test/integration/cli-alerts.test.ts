import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { connect } from '../../src/cursor/database/index.ts';
import type { Alert } from '../../src/jobs/alerts.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { listening } from '../support/front.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';

/**
 * Each example config reports a service that always answers 503, unmodified: only the environment is filled in, and the two hours
 * of waiting are written into the schedule.
 */
const CONFIGS: Record<string, (place: Place, env: Record<string, string>) => Promise<string>> = {
  'tributary init': async (place, env) => {
    const args = ['--yes', '--untested', '--base-url', env.TRIBUTARY_BASE_URL ?? '', '--plan', 'business'];
    expect(await place.run(['init', ...args], env)).toMatchObject({ code: 0 });
    return readFile(join(place.dir, 'config/tributary.yaml'), 'utf8');
  },
  'docker/tributary.yaml': () => readFile('docker/tributary.yaml', 'utf8'),
  'deploy/kubernetes.yaml': async (_place, { TRIBUTARY_BASE_URL = '' }) => {
    const manifest = await readFile('deploy/kubernetes.yaml', 'utf8');
    const maps = parseAllDocuments(manifest).map((document) => document.toJS() as { kind: string; data: object });
    const data = maps.find(({ kind }) => kind === 'ConfigMap')?.data as Record<string, string>;
    return (data['tributary.yaml'] ?? '').replace('https://api.example.com', TRIBUTARY_BASE_URL);
  },
  'a config that mutes late streams': async (place, env) =>
    (await CONFIGS['tributary init']?.(place, env))?.replace('alerts: {', 'alerts: { mute: [late],') ?? '',
};

interface Seen {
  alerts: Alert[];
  log: string;
}

const databases: TestDatabase[] = [];
const servers: Server[] = [];
afterAll(async () => {
  for (const server of servers) server.close();
  await Promise.all(databases.map((database) => database.drop()));
});

/** Open until the end of the file: concurrent tests cannot own it. */
async function serve(listener: RequestListener): Promise<{ baseUrl: string }> {
  const server = createServer(listener);
  servers.push(server);
  return { baseUrl: `http://127.0.0.1:${await listening(server)}` };
}

/** Starts a worker with a config, and waits until it reports the outage. */
async function noticed(name: string): Promise<Seen> {
  const service = await serve((_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end('{"error":{"code":"internal_server_error","message":"<!channel> down & out"}}');
  });
  const alerts: Alert[] = [];
  const hook = await serve((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => alerts.push(JSON.parse(text) as Alert));
    request.on('end', () => response.end());
  });
  const [place, database] = await Promise.all([freshPlace(), freshDatabase()]);
  databases.push(database);
  const env = {
    DATABASE_URL: database.url,
    TRIBUTARY_API_KEY: 'a-key',
    TRIBUTARY_ALERT_WEBHOOK: hook.baseUrl,
    TRIBUTARY_BASE_URL: service.baseUrl,
    TRIBUTARY_TOKEN: 'a-long-token-that-nobody-guesses',
  };
  await writeFile(join(place.dir, 'own.yaml'), (await CONFIGS[name]?.(place, env)) ?? '');
  const worker = place.start(['worker', '--config', 'own.yaml'], env);
  const db = connect({ url: database.url, max: 1 });
  try {
    await worker.saw('working on 3 streams');
    for (let failed = 0; failed < 3; await sleep(500)) {
      const text = `select count(distinct stream)::int as n from tributary.runs where message is not null`;
      failed = (await db.query<{ n: number }>({ text }))[0]?.n ?? 0;
    }
    await db.query({ text: `update tributary.schedules set created_at = now() - interval '2 hours'` });
    for (const stream of ['clicks', 'leads', 'sales']) await worker.saw(`main/${stream} late: `);
  } finally {
    worker.child.kill('SIGTERM');
    await db.close();
  }
  return { alerts, log: (await worker.done).text };
}

describe.concurrent('an endless 503', () => {
  it.each(Object.keys(CONFIGS).slice(0, 3))('reaches the webhook with the config of %s', async (name) => {
    const { alerts } = await noticed(name);
    expect(alerts.map(({ stream }) => stream).sort()).toEqual(['clicks', 'leads', 'sales']);
    for (const alert of alerts) {
      expect(alert).toMatchObject({ event: 'opened', kind: 'late', source: 'main' });
      // What Slack shows, without markup: a service must not mention a channel.
      expect(alert.text).toContain(
        `main/${alert.stream} late: the first sync has not moved for 2 h, more than maxLag (60 min)`,
      );
      expect(alert.text).toContain('the service answered 503: &lt;!channel&gt; down &amp; out');
      expect(alert.text).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
    }
  });

  it('stays in the log when its kind is muted', async () => {
    const { alerts, log } = await noticed('a config that mutes late streams');
    expect(alerts).toEqual([]);
    expect(log).toContain('main/clicks late: the first sync has not moved for 2 h, more than maxLag (60 min)');
  });
});
