import { execFileSync, spawnSync } from 'node:child_process';

/** A system dependency of the tests. */
interface Wanted {
  /** Any of these programs is enough. */
  programs: readonly string[];
  /** Names of Debian packages. */
  packages: readonly string[];
  /** How to install it elsewhere. */
  elsewhere: string;
}

/** Set only on machines made for tests: others get no unrequested packages. */
const mayInstall = process.env.TRIBUTARY_TEST_INSTALL === '1';

/** The path of the program; undefined if it is missing, which is reported, so that its tests are skipped. */
export function findOrInstall({ programs, packages, elsewhere }: Wanted): string | undefined {
  const found = find(programs);
  if (found !== undefined) return found;
  if (mayInstall) {
    install(packages);
    const installed = find(programs);
    if (installed === undefined) throw new Error(`${packages[0]} was installed, but there is no ${programs[0]}`);
    return installed;
  }
  process.stderr.write(
    `No ${programs[0]}: the tests that need it are skipped. To run them: apt-get install ${packages.join(' ')}; ${elsewhere}; ` +
      'or, on a machine made for tests, TRIBUTARY_TEST_INSTALL=1 as root.\n',
  );
  return undefined;
}

const find = (programs: readonly string[]): string | undefined =>
  programs
    .map((name) => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim())
    .find(Boolean);

function install(packages: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const run = (...args: string[]) => execFileSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
  try {
    run('install', '-qq', '-y', '--no-install-recommends', ...packages);
  } catch {
    // Recovery: the package lists may be missing or old; they are updated for another try.
    run('update', '-qq');
    run('install', '-qq', '-y', '--no-install-recommends', ...packages);
  }
}
