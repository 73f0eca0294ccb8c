import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { faultsOf, type Manifest, notesFor } from './release-checks.ts';

/**
 * `npm run release`: is this commit fit to be released? Looks at the tree, the version and the changelog, runs what
 * CI runs, and prints the commands that publish it. It publishes nothing itself: provenance is given by a CI job that
 * may prove who it is, not by a person's machine.
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
  process.stdout.write(`${name} ${version} is fit to be released:

${notesFor(version, changelog)}

next, here:
  git tag --annotate v${version} --message "${name} ${version}" && git push origin v${version}
then, in a CI job on that tag with the permission id-token: write
  npm ci --ignore-scripts && npm publish --provenance --access public${version.includes('-') ? ' --tag next' : ''}
`);
  return 0;
}

process.exitCode = main();
