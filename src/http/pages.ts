import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import staticFiles from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import type { BullQueue, JobQueue } from '../jobs/bull.ts';

/** uPlot as published, because the page has no build step. */
const CHART_FILES = { 'uPlot.js': 'uPlot.esm.js', 'uPlot.css': 'uPlot.min.css' };
const CHART_FOLDER = dirname(createRequire(import.meta.url).resolve('uplot/dist/uPlot.esm.js'));

const FOLDER = fileURLToPath(new URL('page/', import.meta.url));

/** The page. It refers to its files and the API by relative URLs, so that it works under any path of a proxy. */
function readPage(): { version: string; page: string } {
  const hash = createHash('sha256');
  for (const entry of readdirSync(FOLDER, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) hash.update(readFileSync(join(entry.parentPath, entry.name)));
  for (const file of Object.values(CHART_FILES)) hash.update(readFileSync(join(CHART_FOLDER, file)));
  // A hash of the content is part of the path of the files, so that browsers can cache them forever.
  const version = hash.digest('base64url').replace(/\W/g, '').slice(0, 12);
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8');
  // Modules import each other by relative paths, so only the references in the HTML need the version.
  return { version, page: page.replace(/\b(href|src)="(?=[^/#])(?!queues)/g, `$1="files-${version}/`) };
}

/** Files never change under their path; the page that refers to them is revalidated every time. */
export async function addPage(app: FastifyInstance): Promise<void> {
  const { version, page } = readPage();
  const config = { role: 'open', anySite: true } as const;
  const etag = `W/"${version}"`;
  app.get('/', { config }, (request, reply) => {
    reply.headers({ etag, 'cache-control': 'no-cache' }).type('text/html; charset=utf-8');
    return request.headers['if-none-match'] === etag ? reply.status(304).send() : reply.send(page);
  });
  await app.register(async (files) => {
    files.addHook('onRoute', (route) => {
      route.config = { ...route.config, ...config };
    });
    for (const [name, file] of Object.entries(CHART_FILES))
      files.get(`/files-${version}/${name}`, (_, reply) => reply.sendFile(file, CHART_FOLDER));
    await files.register(staticFiles, {
      root: FOLDER,
      prefix: `/files-${version}/`,
      index: false,
      immutable: true,
      maxAge: '1y',
    });
  });
}

export const QUEUES_PATH = '/queues';

/**
 * Bull Board, read-only: actions belong to the API, which checks roles and writes the audit trail. Job payloads
 * are hidden: today they contain only names and windows, but that may change.
 */
export function queueBoard(queue: JobQueue, path: string, home: string) {
  const server = new FastifyAdapter().setBasePath(path);
  createBullBoard({
    queues: Object.values(queue.queues).map((each) => new HiddenQueue(each)),
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: 'Tributary queues',
        hideRedisDetails: true,
        miscLinks: [{ text: 'Back to Tributary', url: home }],
      },
    },
  });
  // Its own error handler would send the message of any error.
  server.setErrorHandler(() => ({
    status: 500,
    body: { error: 'ERRORS.INTERNAL_SERVER_ERROR', message: 'the queue does not answer' },
  }));
  return server.registerPlugin();
}

const HIDDEN = '(hidden)';

class HiddenQueue extends BullMQAdapter {
  constructor(queue: BullQueue) {
    super(queue, { readOnlyMode: true });
    this.setFormatter('data', () => HIDDEN);
    this.setFormatter('returnValue', () => HIDDEN);
    this.setFormatter('progress', () => '');
  }

  override async getJobSchedulers() {
    return (await super.getJobSchedulers()).map(({ template: _, ...scheduler }) => scheduler);
  }

  override async getJobLogs(): Promise<string[]> {
    return [];
  }
}

/**
 * Bull Board's page would load fonts from another host and use inline styles. The content security policy forbids both; removing them
 * keeps the browser from trying.
 */
export const withinPolicy = (payload: unknown): unknown =>
  typeof payload === 'string'
    ? payload.replace(/<link[^>]+href="https?:[^>]*>|<style>.*?<\/style>| style="[^"]*"/gs, '')
    : payload;
