import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** The page's own files, read once: what is not among them cannot be asked for, whatever the path says. */
export interface PageFile {
  type: string;
  body: Buffer;
  zipped: Buffer;
  /** Changes with the content: a browser asks whether it has changed, and mostly it has not. */
  etag: string;
}

const FOLDER = fileURLToPath(new URL('page/', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};

/** By the path that it is asked for under: `/` and `/app/lag.js`. */
export function readPageFiles(folder: string = FOLDER): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const file = join(entry.parentPath, entry.name);
    const body = readFileSync(file);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    const path = `/${file.slice(folder.length).split(sep).join('/')}`;
    files.set(path === '/index.html' ? '/' : path, { type, body, zipped: gzipSync(body), etag });
  }
  return files;
}
