import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Debian's own: a browser that a package downloads at install does not come through closed networks. */
export const CHROMIUM = '/usr/bin/chromium';

/** The browser tests need a browser: it is installed here where that is possible, else whoever runs them is told. */
export default function setup(): void {
  if (existsSync(CHROMIUM)) return;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) install();
  if (existsSync(CHROMIUM)) return;
  process.stderr.write(`tests in test/browser need ${CHROMIUM}: apt-get install chromium\n`);
}

function install(): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const packages = ['install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core'];
  try {
    execFileSync('apt-get', packages, { stdio: 'ignore', env });
  } catch {
    // Recovery: the lists of packages may be missing or old; with new ones it is tried once more.
    execFileSync('apt-get', ['update'], { stdio: 'ignore', env });
    execFileSync('apt-get', packages, { stdio: 'ignore', env });
  }
}
