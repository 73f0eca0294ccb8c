/**
 * Writes the manifest and the lock file of what is shipped into a folder: what is installed with the package, and what the build bundles.
 * `node scripts/shipped.mjs FOLDER`, after a build.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const [folder] = process.argv.slice(2);
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const bundled = new Set(
  [...readFileSync('dist/bundle/LICENSES.txt', 'utf8').matchAll(/^={80}\n(\S+) /gm)].map(([, name]) => name),
);

/** Packages that are only built with, but end up in the bundle, are dependencies of whoever installs it. */
function asShipped({ dependencies, devDependencies, ...rest }) {
  const names = Object.entries(devDependencies).filter(([name]) => bundled.has(name));
  return { ...rest, dependencies: { ...dependencies, ...Object.fromEntries(names) } };
}

const lock = read('package-lock.json');
for (const [path, entry] of Object.entries(lock.packages))
  if (bundled.has(path.replace(/^.*node_modules\//, ''))) delete entry.dev;
lock.packages[''] = asShipped(lock.packages['']);
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/package.json`, JSON.stringify(asShipped(read('package.json')), null, 2));
writeFileSync(`${folder}/package-lock.json`, JSON.stringify(lock, null, 2));
