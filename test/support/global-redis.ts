import { execFileSync } from 'node:child_process';

/** Tests start their own redis-server: it is installed here where that is possible, else whoever runs them is told. */
export default function setup(): void {
  if (has('redis-server')) return;
  if (process.getuid?.() === 0 && has('apt-get')) install();
  if (has('redis-server')) return;
  process.stderr.write('tests of the worker need redis-server: apt-get install redis-server, or brew install redis\n');
}

function install(): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const packages = ['install', '-y', '--no-install-recommends', 'redis-server'];
  try {
    execFileSync('apt-get', packages, { stdio: 'ignore', env });
  } catch {
    // Recovery: the lists of packages may be missing or old; with new ones it is tried once more.
    execFileSync('apt-get', ['update'], { stdio: 'ignore', env });
    execFileSync('apt-get', packages, { stdio: 'ignore', env });
  }
}

function has(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
