import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Encoding, pack } from './compression.ts';

/** The page's own files, read once: what is not among them cannot be asked for, whatever the path says. */
export interface PageFile {
  type: string;
  body: Buffer;
  /** Packed when it is asked for first. Undefined: it is too small for that. */
  packed(encoding: Encoding): Promise<Buffer | undefined>;
  /** Changes with the content: a browser asks whether it has changed, and mostly it has not. */
  etag: string;
  /** Of a file whose path changes with the content of them all: a browser need not even ask. */
  isForever: boolean;
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

/**
 * By the path that it is asked for under: `/`, and `/files-4f1b/app/lag.js`. The page is some fifty files: with the version in their
 * path a browser that has them asks for none of them again. Modules name each other by relative paths, so only the first one is told.
 */
export function readPageFiles(folder: string = FOLDER): ReadonlyMap<string, PageFile> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const type = TYPES[extname(entry.name)];
      const path = join(entry.parentPath, entry.name);
      const name = path.slice(folder.length).split(sep).join('/');
      return type === undefined ? [] : [{ name, type, body: readFileSync(path) }];
    });
  const version = digest(...found.map(({ body }) => body)).slice(0, 12);
  return new Map(
    found.map(({ name, type, body }) => {
      const isPage = name === 'index.html';
      const file = pageFile(type, isPage ? withVersion(body, version) : body, !isPage);
      return [isPage ? '/' : `/files-${version}/${name}`, file];
    }),
  );
}

/** References without a slash or a hash in front are to files beside the page. */
const withVersion = (page: Buffer, version: string): Buffer =>
  Buffer.from(page.toString().replace(/\b(href|src)="(?=[^/#])/g, `$1="/files-${version}/`));

function pageFile(type: string, body: Buffer, isForever: boolean): PageFile {
  const packed = new Map<Encoding, Promise<Buffer | undefined>>();
  return {
    type,
    body,
    packed(encoding) {
      const known = packed.get(encoding) ?? pack(body, encoding);
      packed.set(encoding, known);
      return known;
    },
    // Weak: it is the same file, packed or not.
    etag: `W/"${digest(body)}"`,
    isForever,
  };
}

const digest = (...parts: readonly Buffer[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64url').slice(0, 22);
};
