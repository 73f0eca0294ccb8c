/** What must hold before a version leaves the house. Pure: everything it judges is handed in. */

export interface Manifest {
  name: string;
  version: string;
  license?: string;
  description?: string;
  repository?: string | { url?: string };
  engines?: { node?: string };
}

export interface Candidate {
  manifest: Manifest;
  /** The version that package-lock.json names. */
  lockVersion: string;
  /** Of charts/tributary/Chart.yaml. */
  chart: { version: string; appVersion: string };
  changelog: string;
  branch: string;
  /** What `git status --porcelain` prints. */
  changes: string;
  /** All tags, such as v0.1.0. */
  tags: readonly string[];
}

/** Everything that stands in the way, at once. */
export function faultsOf(candidate: Candidate): string[] {
  const { manifest, lockVersion, chart, branch, changes, tags } = candidate;
  const { version } = manifest;
  const faults: string[] = [];
  if (changes.trim() !== '') faults.push(`the working tree has changes: commit or remove them\n${changes.trimEnd()}`);
  if (branch !== 'main') faults.push(`this is branch ${branch}: releases are made on main`);
  if (parseVersion(version) === undefined) faults.push(`version ${version} is not of the form 1.2.3 or 1.2.3-rc.1`);
  if (lockVersion !== version)
    faults.push(`package-lock.json says ${lockVersion}, package.json ${version}: npm install`);
  if (chart.version !== version || chart.appVersion !== version)
    faults.push(`Chart.yaml has version ${chart.version} and appVersion ${chart.appVersion}, package.json ${version}`);
  if (tags.includes(`v${version}`))
    faults.push(`v${version} has been released: raise the version (npm version --no-git-tag-version)`);
  const newer = newestOf(tags);
  if (newer !== undefined && !tags.includes(`v${version}`) && compare(version, newer) < 0)
    faults.push(`version ${version} is older than ${newer}, which has been released`);
  if (notesFor(version, candidate.changelog) === undefined)
    faults.push(`CHANGELOG.md has no text under a heading "## ${version}"`);
  // npm compares a provenance statement with this address and refuses the package if they differ.
  if (addressOf(manifest) === undefined)
    faults.push('package.json names no repository: npm refuses provenance without it');
  for (const key of ['license', 'engines'] as const)
    if (manifest[key] === undefined) faults.push(`package.json has no ${key}`);
  return faults;
}

const addressOf = ({ repository }: Manifest): string | undefined =>
  (typeof repository === 'string' ? repository : repository?.url) || undefined;

/** What an image says of itself beyond what the Dockerfile knows. */
export function imageLabels(manifest: Manifest, revision: string, created: Date): Record<string, string> {
  const source = addressOf(manifest)?.replace(/^git\+/, '');
  return {
    'org.opencontainers.image.version': manifest.version,
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.created': created.toISOString(),
    ...(source === undefined ? {} : { 'org.opencontainers.image.source': source }),
  };
}

/** The text of the changelog under the version's heading, which may carry a date. */
export function notesFor(version: string, changelog: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/[\s,]/, 1)[0] === version);
  return section?.slice(section.indexOf('\n') + 1).trim() || undefined;
}

type Version = [major: number, minor: number, patch: number, before: string];

function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch, before = ''] = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z.-]+))?$/.exec(text) ?? [];
  return patch === undefined ? undefined : [Number(major), Number(minor), Number(patch), before];
}

function compare(a: string, b: string): number {
  const [left, right] = [parseVersion(a), parseVersion(b)];
  if (left === undefined || right === undefined) return 0;
  for (const part of [0, 1, 2] as const) if (left[part] !== right[part]) return left[part] - right[part];
  // 1.0.0-rc.1 comes before 1.0.0.
  if (left[3] === '' || right[3] === '') return Number(left[3] === '') - Number(right[3] === '');
  return left[3].localeCompare(right[3], 'en', { numeric: true });
}

const newestOf = (tags: readonly string[]): string | undefined =>
  tags
    .filter((tag) => tag.startsWith('v') && parseVersion(tag.slice(1)) !== undefined)
    .map((tag) => tag.slice(1))
    .sort(compare)
    .at(-1);
