/** Production dependencies and their licences, from the lock file: none may ask more of a user than to keep its notice. */
import { readFileSync } from 'node:fs';

const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT'];

const [lock = 'package-lock.json'] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(lock, 'utf8'));
const production = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
const refused = production.filter(([, { license }]) => !ALLOWED.includes(license));
for (const [path, { license = 'no licence' }] of refused) {
  process.stderr.write(`${path.replace(/^.*node_modules\//, '')}: ${license}\n`);
}
if (refused.length > 0) {
  process.stderr.write(
    `next: use another package, or add the licence to scripts/check-licences.mjs if it is as free as the others\n`,
  );
  process.exitCode = 1;
} else {
  process.stdout.write(`${production.length} production packages, all under ${ALLOWED.join(', ')}\n`);
}
