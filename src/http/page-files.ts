import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import staticFiles from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/** The page's own files. */
interface PageFiles {
  folder: string;
  /** Changes with the content of any of them, and is part of their path: a browser that has them asks for none again. */
  version: string;
  /** The page itself. It names its files and the API by relative addresses, so that it works under any path of a proxy. */
  page: string;
}

const FOLDER = fileURLToPath(new URL('page/', import.meta.url));

/** Modules name each other by relative paths, so only the references of the page itself are told the version. */
function readPageFiles(folder: string = FOLDER): PageFiles {
  const hash = createHash('sha256');
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) hash.update(readFileSync(join(entry.parentPath, entry.name)));
  const version = hash.digest('base64url').replace(/\W/g, '').slice(0, 12);
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  return {
    folder,
    version,
    page: page.replace(/\b(href|src)="(?=[^/#])(?!queues)/g, `$1="files-${version}/`),
  };
}

/** Files never change under their path; the page that names them is asked for every time. */
export async function addPage(app: FastifyInstance): Promise<void> {
  const { folder, version, page } = readPageFiles();
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
    await files.register(staticFiles, {
      root: folder,
      prefix: `/files-${version}/`,
      index: false,
      immutable: true,
      maxAge: '1y',
    });
  });
}
