import { execFileSync, spawnSync } from 'node:child_process';

/** What tests need and npm does not bring. */
interface Wanted {
  /** Any of these programs will do. */
  programs: readonly string[];
  /** As Debian names the packages. */
  packages: readonly string[];
  /** How to get it elsewhere. */
  elsewhere: string;
}

/** Only a machine that is made for tests sets it: nobody else's gets packages that nobody asked for. */
const mayInstall = process.env.TRIBUTARY_TEST_INSTALL === '1';

/** The path of the program, or undefined where the tests that need it are to be skipped: whoever runs them is told what is missing. */
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
    // Recovery: the lists of packages may be missing or old; with new ones it is tried once more.
    run('update', '-qq');
    run('install', '-qq', '-y', '--no-install-recommends', ...packages);
  }
}
