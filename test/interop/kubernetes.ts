import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { openDesk } from './built.ts';
import { type Found, must, type Part, run, withClosers } from './part.ts';
import { goProgram, goVersion, pythonVersions, pythonWith } from './tools.ts';

/** The manifest deploy/kubernetes.yaml and what the chart renders, checked against the schemas of Kubernetes; their configs are valid. */

const CHART = 'charts/tributary';
const HELM = 'helm.sh/helm/v3/cmd/helm@latest';
/** The oldest that Chart.yaml allows, and the newest that the validator knows. */
const OLDEST = '1.25.0';

interface Manifest {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: { template?: { spec?: { containers?: Array<{ image: string }> } } };
}

export const kubernetes: Part[] = [
  {
    name: 'kubernetes',
    checks: 'the manifest deploy/kubernetes.yaml against the schemas of Kubernetes, strictly',
    needs: 'Python with kubernetes-validate',
    run: () => withClosers(tryManifests),
  },
  {
    name: 'helm',
    checks:
      'the chart: lint, five sets of values rendered, validated strictly, their configs checked; what is missing is refused',
    needs: `helm (go install ${HELM}), Python with kubernetes-validate`,
    run: () => withClosers(tryChart),
  },
];

async function tryManifests(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await validator();
  const count = await validate(python, readFileSync('deploy/kubernetes.yaml', 'utf8'), opened);
  return {
    versions: await pythonVersions(python, ['kubernetes-validate']),
    result: `${count} objects are valid on Kubernetes ${OLDEST} and on the newest`,
  };
}

const validator = (): Promise<string> => pythonWith('k8s', ['kubernetes-validate']);

/** How many objects there are; those of an operator's own kinds have no schema here. */
async function validate(python: string, text: string, opened: (close: () => unknown) => void): Promise<number> {
  const known = manifestsIn(text).filter(({ kind }) => kind !== 'ServiceMonitor');
  const dir = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'manifests.yaml');
  await writeFile(file, known.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
  const call = ['-m', 'kubernetes_validate', '--strict', '--no-warn'];
  await must(python, [...call, '-k', OLDEST, file]);
  await must(python, [...call, file]);
  return known.length;
}

const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest)
    .filter((manifest) => manifest !== null);

const fromEnvironment = (name: string): string => `\${${name}}`;

const source = (name: string) => ({
  baseUrl: `https://${name}.example.com`,
  apiKey: fromEnvironment(`${name.toUpperCase()}_KEY`),
  plan: 'business',
});

const VALUES: Readonly<Record<string, object>> = {
  'as little as can be': { sources: { main: source('main') } },
  'two sources and a lake only': {
    sources: {
      main: source('main'),
      eu: { ...source('eu'), since: '2026-01-01', streams: { sales: { every: '1m' } } },
    },
    sinks: { lake: { type: 'parquet', path: 's3://bucket/prefix', partition: 'day' } },
    serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/lake' } },
  },
  everything: {
    sources: { main: source('main') },
    sinks: { warehouse: { type: 'postgres', schema: 'attribution' } },
    existingSecrets: ['tributary', 'keys'],
    replicas: 3,
    image: { repository: 'registry.example.com/other', tag: '9.9.9' },
    imagePullSecrets: [{ name: 'registry' }],
    resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { cpu: '2', memory: '2Gi' } },
    tokens: { grafana: { token: fromEnvironment('GRAFANA_TOKEN'), role: 'metrics' } },
    podDisruptionBudget: { enabled: true },
    serviceMonitor: {
      enabled: true,
      labels: { release: 'prometheus' },
      tokenSecret: { name: 'keys', key: 'GRAFANA_TOKEN' },
    },
    networkPolicy: { enabled: true, ingressFrom: [{ namespaceSelector: { matchLabels: { team: 'data' } } }] },
    podLabels: { team: 'data' },
    podAnnotations: { note: 'x' },
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'batch', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
  },
  'a policy without a list': { sources: { main: source('main') }, networkPolicy: { enabled: true } },
  'a service account of others': {
    sources: { main: source('main') },
    serviceAccount: { create: false, name: 'theirs' },
    alerts: null,
  },
};

const ENVIRONMENT = {
  DATABASE_URL: 'postgresql://tributary@postgres/tributary',
  TRIBUTARY_TOKEN: 'a-token-that-is-long-enough-for-this',
  GRAFANA_TOKEN: 'another-token-that-is-long-enough',
  MAIN_KEY: 'key',
  EU_KEY: 'key',
};

async function tryChart(opened: (close: () => unknown) => void): Promise<Found> {
  const helm = await goProgram('helm', HELM);
  const python = await validator();
  const dir = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'values.json');
  let count = 0;
  for (const [name, values] of Object.entries(VALUES)) {
    await writeFile(file, JSON.stringify(values));
    await must(helm, ['lint', '--strict', CHART, '--kube-version', OLDEST, '--values', file]);
    const manifests = manifestsIn(
      await must(helm, [
        'template',
        'tributary',
        CHART,
        '--kube-version',
        OLDEST,
        '--namespace',
        'data',
        '--values',
        file,
      ]),
    );
    count += await validate(python, manifests.map((one) => JSON.stringify(one)).join('\n---\n'), opened);
    const config = manifests.find(({ kind }) => kind === 'ConfigMap')?.data?.['tributary.yaml'] ?? '';
    const desk = await openDesk(config, ENVIRONMENT);
    opened(desk.close);
    const { code, out, err } = await desk.tributary('config', 'check');
    if (code !== 0) throw new Error(`${name}: the config is not sound: ${out}${err}\n${config}`);
  }
  await refused(helm, file, {}, 'sources: name at least one');
  await refused(
    helm,
    file,
    { sources: { main: source('main') }, existingSecrets: [] },
    'existingSecrets: name the Secret',
  );
  return {
    versions: `helm ${await goVersion(helm)}, ${await pythonVersions(python, ['kubernetes-validate'])}`,
    result: `${Object.keys(VALUES).length} sets of values give ${count} objects, valid on Kubernetes ${OLDEST} and on the newest; every config is valid`,
  };
}

async function refused(helm: string, file: string, values: object, message: string): Promise<void> {
  await writeFile(file, JSON.stringify(values));
  const { code, err } = await run(helm, ['template', 'tributary', CHART, '--kube-version', OLDEST, '--values', file]);
  if (code === 0 || !err.includes(message))
    throw new Error(`values ${JSON.stringify(values)} were not refused: ${err}`);
}
