import { execFileSync } from 'node:child_process';
import { type Dirent, readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A package on disk, without nested packages. */
export interface Part {
  name: string;
  bytes: number;
}

interface Locked {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/** The packages of an installation on disk, largest first: the lock file lists them, the disk shows which ones this machine uses. */
export async function installed(): Promise<Part[]> {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> };
  const parts = await Promise.all(
    [...reached(packages)].map(async (path) => ({
      name: path.replace(/^.*node_modules\//, '') || 'tributary itself',
      bytes: path === '' ? packed() : await sizeOf(path),
    })),
  );
  return parts.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes);
}

/** The paths of a package and its dependencies, without development and optional peer dependencies. */
function reached(packages: Readonly<Record<string, Locked>>, path = '', found = new Set<string>()): Set<string> {
  if (found.has(path)) return found;
  found.add(path);
  const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} } = packages[path] ?? {};
  const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const place = placeOf(packages, path, name);
    if (place !== undefined) reached(packages, place, found);
  }
  return found;
}

/** As Node resolves it: beside, then further up. */
function placeOf(packages: Readonly<Record<string, Locked>>, from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (place in packages || at === '') return place in packages ? place : undefined;
  }
}

/** The published size: the build also leaves a code cache for this Node version here. */
function packed(): number {
  const [found] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' }),
  );
  return found.unpackedSize;
}

async function sizeOf(path: string): Promise<number> {
  const entries = await readdir(path, { withFileTypes: true }).catch((): Dirent[] => []);
  const sizes = entries.map(async (entry) => {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? 0 : sizeOf(inside);
    return entry.isFile() ? (await stat(inside)).size : 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
