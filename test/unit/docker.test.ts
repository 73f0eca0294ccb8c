import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { argv, filledEnvExample, readCompose, readDockerfile, said, variablesOfCompose } from '../support/docker.ts';

/** Checks of the container without a Docker engine. package-image.test.ts runs the command of the image. */

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  engines: { node: string };
  bin: { tributary: string };
  description: string;
  license: string;
  dependencies: Record<string, string>;
};

describe('the Dockerfile', () => {
  const stages = readDockerfile();
  const image = stages.at(-1);

  it('builds in stages, and leaves the tools out of the image', () => {
    expect(stages.map(({ name }) => name)).toEqual(['package', 'install', undefined]);
    const runs = image?.instructions.filter(({ word }) => word === 'RUN').map(({ rest }) => rest) ?? [];
    expect(runs.filter((command) => /npm|apt|curl/.test(command))).toEqual([]);
  });

  it('names the version of its base, which the package supports', () => {
    for (const { base } of stages) {
      const [, major] = /^node:(\d+)-\w+-slim$/.exec(base) ?? [];
      expect(Number(major), base).toBeGreaterThanOrEqual(Number.parseInt(manifest.engines.node.slice(2), 10));
    }
  });

  it('can be pinned: one argument sets the base of every stage by digest', () => {
    const base = `node:24-bookworm-slim@sha256:${'0'.repeat(64)}`;
    expect(readDockerfile(undefined, { NODE: base }).map((stage) => stage.base)).toEqual([base, base, base]);
  });

  it('runs as a numeric user other than root', () => {
    expect(said(image, 'USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it('starts without a shell, so that signals reach the worker', () => {
    expect(argv(said(image, 'ENTRYPOINT'))).toEqual(['node', `/app/${manifest.bin.tributary}`]);
    expect(argv(said(image, 'CMD'))).toEqual(['start']);
    expect(argv(said(image, 'HEALTHCHECK'))[0]).toBe('node');
  });

  it('has the labels of package.json', () => {
    const labels = Object.fromEntries(
      [...(said(image, 'LABEL') ?? '').matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)].map(
        ([, key, value]) => [key, value],
      ),
    );
    expect(labels).toEqual({ title: 'tributary', description: manifest.description, licenses: manifest.license });
  });

  it('copies only files that exist and that .dockerignore admits', () => {
    const letIn = readFileSync('.dockerignore', 'utf8').match(/(?<=^!).+/gm) ?? [];
    const copied = stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ word, rest }) => word === 'COPY' && !rest.startsWith('--from'))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1));
    expect(copied.filter((path) => !existsSync(path))).toEqual([]);
    expect([...new Set(copied)].sort()).toEqual([...letIn].sort());
  });

  it('does not run install scripts of dependencies, and contains no secret', () => {
    const lines = stages.flatMap(({ instructions }) => instructions);
    const installs = lines.filter(({ rest }) => rest.includes('npm ci'));
    expect(installs.length).toBe(2);
    for (const { rest } of installs) expect(rest).toContain('--ignore-scripts');
    expect(
      lines.filter(({ word, rest }) => /^(ENV|ARG)$/.test(word) && /KEY|TOKEN|PASS|SECRET|URL/.test(rest)),
    ).toEqual([]);
  });
});

describe('compose.yaml', () => {
  const env = filledEnvExample();
  const { services, volumes } = readCompose(env);
  const { tributary, postgres, redis } = services;

  it('requires only the variables that .env.example names', () => {
    expect(variablesOfCompose().sort()).toEqual(Object.keys(env).sort());
    expect(() => readCompose({ ...env, TRIBUTARY_API_KEY: '' })).toThrow('TRIBUTARY_API_KEY is required');
    const secrets = readFileSync('docker/.env.example', 'utf8').match(/^\w*(KEY|TOKEN|PASSWORD)=.*$/gm);
    expect(secrets).toEqual(['TRIBUTARY_API_KEY=', 'TRIBUTARY_TOKEN=', 'POSTGRES_PASSWORD=']);
  });

  it('passes the config every variable that it uses', () => {
    const { config, warnings } = parseConfig(
      readFileSync('docker/tributary.yaml', 'utf8'),
      'docker/tributary.yaml',
      tributary?.environment ?? {},
    );
    expect(warnings).toEqual([]);
    expect(config.sources.main).toMatchObject({ apiKey: 'filled-in-TRIBUTARY_API_KEY', plan: 'business' });
    expect(config.state.url).toBe('postgresql://tributary:filled-in-POSTGRES_PASSWORD@postgres/tributary');
    expect(config.queue.url).toBe('redis://redis:6379');
    expect(config.http).toMatchObject({ host: '0.0.0.0', port: 7070, token: 'filled-in-TRIBUTARY_TOKEN' });
    expect(config.alerts).toMatchObject({ webhook: 'https://hooks.example.com/filled-in', mute: [] });
  });

  it('gives the worker no privileges, and only a volume and memory to write to', () => {
    expect(tributary).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(tributary?.volumes?.filter((volume) => !volume.endsWith(':ro'))).toEqual(['lake:/tributary/data']);
  });

  it('publishes nothing to other machines', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(ports).toHaveLength(1);
  });

  it('waits for healthy servers, and persists their data', () => {
    expect(tributary?.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    });
    for (const server of [postgres, redis]) {
      expect(server?.healthcheck?.test[0]).toBe('CMD');
      expect(Object.keys(volumes)).toContain(server?.volumes?.[0]?.split(':')[0]);
      expect(server?.image).toMatch(/:\d+/);
    }
  });

  it('has a Redis that never drops a job', () => {
    expect(redis?.command?.join(' ')).toContain('--appendonly yes --maxmemory-policy noeviction');
  });
});
