import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Candidate, faultsOf, imageLabels, notesFor } from '../../scripts/release-checks.ts';

const CHANGELOG = '# Changes\n\n## 1.2.0, 2026-11-20\n\n- something new\n\n## 1.1.0\n\n- older\n\n## 1.0.0\n';

const fit: Candidate = {
  manifest: {
    name: 'tributary-sync',
    version: '1.2.0',
    license: 'Apache-2.0',
    repository: { url: 'git+https://git.example/tributary.git' },
    engines: { node: '>=20.19' },
  },
  lockVersion: '1.2.0',
  chart: { version: '1.2.0', appVersion: '1.2.0' },
  changelog: CHANGELOG,
  branch: 'main',
  changes: '',
  tags: ['v1.0.0', 'v1.1.0', 'v1.2.0-rc.1', 'something-else'],
};

describe('a release', () => {
  it('is allowed without faults', () => {
    expect(faultsOf(fit)).toEqual([]);
  });

  const version = (text: string): Partial<Candidate> => ({
    manifest: { ...fit.manifest, version: text },
    lockVersion: text,
    chart: { version: text, appVersion: text },
    changelog: `## ${text}\n- x`,
  });
  it.each<[string, Partial<Candidate>, RegExp]>([
    ['changes', { changes: '?? stray.ts\n' }, /^the working tree has changes.*\n\?\? stray\.ts$/],
    ['another branch', { branch: 'lake' }, /^this is branch lake/],
    ['an invalid version', version('1.2'), /^version 1\.2 is not of the form/],
    ['a released version', version('1.1.0'), /^v1\.1\.0 has been released/],
    ['an older version', version('1.0.9'), /^version 1\.0\.9 is older than 1\.2\.0-rc\.1/],
    ['an earlier candidate', version('1.2.0-beta.3'), /^version 1\.2\.0-beta\.3 is older than 1\.2\.0-rc\.1/],
    ['a stale lock', { lockVersion: '1.1.0' }, /^package-lock\.json says 1\.1\.0/],
    ['a stale chart', { chart: { version: '1.2.0', appVersion: '1.1.0' } }, /^Chart\.yaml has .* appVersion 1\.1\.0/],
    ['no notes', { changelog: '## 1.2.0\n\n## 1.1.0\n- x' }, /^CHANGELOG\.md has no text/],
    ['no repository', { manifest: { ...fit.manifest, repository: {} } }, /^package\.json names no repository/],
  ])('is refused with %s', (_, change, fault) => {
    expect(faultsOf({ ...fit, ...change })).toEqual([expect.stringMatching(fault)]);
  });

  it('lists all faults at once', () => {
    expect(faultsOf({ ...fit, branch: 'x', changes: '?? y', lockVersion: '0' })).toHaveLength(3);
  });
});

it('takes the notes of its own version', () => {
  expect(notesFor('1.2.0', CHANGELOG)).toBe('- something new');
  expect(notesFor('1.1.0', CHANGELOG)).toBe('- older');
  expect(notesFor('1.0.0', CHANGELOG)).toBeUndefined();
  expect(notesFor('1.2', CHANGELOG)).toBeUndefined();
});

it('has the same version in chart, manifest and package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(parse(readFileSync('charts/tributary/Chart.yaml', 'utf8'))).toMatchObject({ version, appVersion: version });
  expect(/image: \S+/.exec(readFileSync('deploy/kubernetes.yaml', 'utf8'))?.[0]).toMatch(`/tributary:${version}`);
});

it('has the commit and its address in the image', () => {
  expect(imageLabels(fit.manifest, 'c0ffee', new Date('2026-11-16T00:00:00Z'))).toEqual({
    'org.opencontainers.image.version': '1.2.0',
    'org.opencontainers.image.revision': 'c0ffee',
    'org.opencontainers.image.created': '2026-11-16T00:00:00.000Z',
    'org.opencontainers.image.source': 'https://git.example/tributary.git',
  });
});
