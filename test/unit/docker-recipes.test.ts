import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/index.ts';
import { argv, readDockerfile, said } from '../support/docker.ts';

/** The examples in docs/deployment.md agree with the image, and their config is valid. */

const MANIFEST = readFileSync('deploy/kubernetes.yaml', 'utf8');
const UNIT = readFileSync('deploy/tributary.service', 'utf8');
const image = readDockerfile().at(-1);

interface Manifest {
  kind: string;
  data: Record<string, string>;
  stringData: Record<string, string>;
  spec: { template: { spec: Pod }; ports: Array<{ targetPort: string }> };
}

interface Pod {
  terminationGracePeriodSeconds: number;
  securityContext: { runAsNonRoot: boolean };
  containers: Array<{
    args: string[];
    ports: Array<{ name: string; containerPort: number }>;
    livenessProbe: { httpGet: { path: string; port: string } };
    securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean };
    volumeMounts: Array<{ name: string; mountPath: string }>;
  }>;
  volumes: Array<{ name: string }>;
}

describe('the Kubernetes manifest', () => {
  const documents = parseAllDocuments(MANIFEST);
  const manifests = documents.map((document) => document.toJS() as Manifest);
  const the = (kind: string): Manifest | undefined => manifests.find((manifest) => manifest.kind === kind);
  const pod = the('Deployment')?.spec.template.spec;
  const container = pod?.containers[0];

  it('is valid YAML', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    expect(manifests.map(({ kind }) => kind)).toEqual(['Secret', 'ConfigMap', 'Deployment', 'Service']);
  });

  it('has a config that is valid with its own secrets, where the image looks for it', () => {
    const text = the('ConfigMap')?.data['tributary.yaml'] ?? '';
    const { config } = parseConfig(text, 'tributary.yaml', the('Secret')?.stringData ?? {});
    expect(config.http).toMatchObject({ host: '0.0.0.0', port: container?.ports[0]?.containerPort });
    expect(container?.volumeMounts[0]?.mountPath).toBe(`${said(image, 'WORKDIR')}/config`);
    expect(container?.volumeMounts.map(({ name }) => name)).toEqual(pod?.volumes.map(({ name }) => name));
  });

  it('runs the command and the health check of the image', () => {
    expect(container?.args).toEqual(argv(said(image, 'CMD')));
    expect(said(image, 'HEALTHCHECK')).toContain(`:7070${container?.livenessProbe.httpGet.path}`);
    expect([container?.ports[0]?.name, the('Service')?.spec.ports[0]?.targetPort]).toEqual(['http', 'http']);
  });

  it('grants no privileges, and time to stop', () => {
    expect(pod?.securityContext.runAsNonRoot).toBe(true);
    expect(container?.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(secondsToStop());
  });
});

describe('the systemd unit', () => {
  const settings = new Map([...UNIT.matchAll(/^(\w+)=(.*)$/gm)].map(([, key = '', value = '']) => [key, value]));

  it('runs the command of the image, and gives it time to stop', () => {
    expect(settings.get('ExecStart')).toBe('/usr/bin/env tributary start --config /etc/tributary/tributary.yaml');
    expect(Number(settings.get('TimeoutStopSec'))).toBeGreaterThan(secondsToStop());
    expect(settings.get('WorkingDirectory')).toBe(`/var/lib/${settings.get('StateDirectory')}`);
  });
});

/** How long a worker takes at most to exit. */
function secondsToStop(): number {
  const [, milliseconds = ''] =
    /EXIT_WITHIN_MS = ([\d_]+)/.exec(readFileSync('src/cli/commands/worker.ts', 'utf8')) ?? [];
  expect(milliseconds).not.toBe('');
  return Number(milliseconds.replaceAll('_', '')) / 1000;
}
