import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type Candidate, faultsOf, imageLabels, type Manifest, notesFor } from './release-checks.ts';

/**
 * `npm run release`: is this commit fit to be released? Looks at the tree, the version and the changelog, runs what
 * CI runs, makes what goes with a release (a bill of materials, the image, the chart's archive), and prints the commands that publish it.
 * It publishes nothing itself: provenance is given by a CI job that may prove who it is, not by a person's machine.
 */

const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trimEnd();
const json = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;

function main(): number {
  const manifest = json<Manifest>('package.json');
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  const faults = faultsOf({
    manifest,
    changelog,
    lockVersion: json<{ version: string }>('package-lock.json').version,
    chart: parse(readFileSync('charts/tributary/Chart.yaml', 'utf8')) as Candidate['chart'],
    branch: git('rev-parse', '--abbrev-ref', 'HEAD'),
    changes: git('status', '--porcelain'),
    tags: git('tag').split('\n'),
  });
  if (faults.length > 0) {
    process.stderr.write(`not fit to be released:\n${faults.map((fault) => `  ${fault}\n`).join('')}`);
    return 1;
  }
  if (spawnSync('.ci/run', { stdio: 'inherit' }).status !== 0) {
    process.stderr.write('not fit to be released: .ci/run failed\n');
    return 1;
  }
  // Tests that leave something behind, or a generated file that was not checked in, show here.
  const left = git('status', '--porcelain');
  if (left !== '') {
    process.stderr.write(`not fit to be released: .ci/run changed the tree\n${left}\n`);
    return 1;
  }
  const { name, version } = manifest;
  const made = [makeBill(manifest), makeImage(manifest), makeChart(manifest)];
  process.stdout.write(`${name} ${version} is fit to be released:

${notesFor(version, changelog)}

made:
${made.map((line) => `  ${line}\n`).join('')}
next, here:
  git tag --annotate v${version} --message "${name} ${version}" && git push origin v${version}
then, in a CI job on that tag with the permission id-token: write
  npm ci --ignore-scripts && npm publish --provenance --access public${version.includes('-') ? ' --tag next' : ''}
`);
  return 0;
}

/** Where it goes; git does not see it. */
const OUT = 'release';

/** What the package is made of, by name, version and licence: what is installed with it, and what its bundle contains. */
function makeBill({ name, version }: Manifest): string {
  const file = `${OUT}/${name}-${version}.cdx.json`;
  mkdirSync(OUT, { recursive: true });
  const shipped = `${OUT}/shipped`;
  execFileSync('node', ['scripts/shipped.mjs', shipped]);
  // The lock file has everything: no network is needed.
  const options = ['--omit', 'dev', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  writeFileSync(file, execFileSync('npm', ['sbom', ...options], { cwd: shipped }));
  return `${file}, the bill of materials`;
}

function makeImage(manifest: Manifest): string {
  if (spawnSync('docker', ['info'], { stdio: 'ignore' }).status !== 0)
    return 'no image: there is no Docker engine here (docker info fails)';
  const labels = Object.entries(imageLabels(manifest, git('rev-parse', 'HEAD'), new Date()));
  const tag = `tributary:${manifest.version}`;
  execFileSync(
    'docker',
    [
      'build',
      '--file',
      'docker/Dockerfile',
      ...labels.flatMap(([key, value]) => ['--label', `${key}=${value}`]),
      '--tag',
      tag,
      '.',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  return `the image ${tag}`;
}

function makeChart({ version }: Manifest): string {
  if (spawnSync('helm', ['version'], { stdio: 'ignore' }).status !== 0)
    return 'no archive of the chart: there is no helm here';
  execFileSync('helm', ['package', 'charts/tributary', '--destination', OUT], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return `${OUT}/tributary-${version}.tgz, the chart`;
}

process.exitCode = main();
