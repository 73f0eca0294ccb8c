import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** The files of docker/, read without a Docker engine: as much of their grammar as ours use, and no more. */

export interface Instruction {
  /** FROM, COPY, RUN … */
  word: string;
  /** What stands behind it, on one line. */
  rest: string;
}

export interface Stage {
  name: string | undefined;
  base: string;
  instructions: Instruction[];
}

/** Arguments are those of `docker build --build-arg`; without one its default counts. */
export function readDockerfile(path = 'docker/Dockerfile', args: Readonly<Record<string, string>> = {}): Stage[] {
  const written = readFileSync(path, 'utf8')
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '');
  const defaults = Object.fromEntries(
    [...written.matchAll(/^ARG (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]),
  );
  const text = written.replace(/\$\{(\w+)\}/g, (whole, name: string) => args[name] ?? defaults[name] ?? whole);
  const stages: Stage[] = [];
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    const [, base, name] = (word === 'FROM' && /^(\S+)(?: AS (\S+))?$/.exec(rest)) || [];
    if (base !== undefined) stages.push({ base, name, instructions: [] });
    else stages.at(-1)?.instructions.push({ word, rest });
  }
  return stages;
}

/** What follows a word in a stage; the last one counts, as it does for Docker. */
export const said = (stage: Stage | undefined, word: string): string | undefined =>
  stage?.instructions.findLast((each) => each.word === word)?.rest;

/** An instruction in its exec form, `["node", "x"]`: in any other a shell would stand between Docker and the process. */
export function argv(text: string | undefined): string[] {
  const [list] = /\[.*\]$/.exec(text ?? '') ?? [];
  if (list === undefined) throw new Error(`not in exec form: ${text}`);
  return JSON.parse(list) as string[];
}

export interface Service {
  image?: string;
  command?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
  ports?: string[];
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  [key: string]: unknown;
}

export interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
}

/** compose.yaml with its variables filled in, as `docker compose` does it. A required one that is missing throws. */
export function readCompose(env: Record<string, string>): Compose {
  const text = readFileSync('docker/compose.yaml', 'utf8').replace(/^\s*#.*\n/gm, '');
  return parse(
    text.replace(VARIABLE, (_, name: string, otherwise?: string) => {
      if (env[name]) return env[name];
      if (otherwise?.startsWith(':-')) return otherwise.slice(2);
      throw new Error(`${name} is required: ${otherwise}`);
    }),
  ) as Compose;
}

const VARIABLE = /\$\{(\w+)(:[-?][^}]*)?\}/g;

export const variablesOfCompose = (): string[] => [
  ...new Set([...readFileSync('docker/compose.yaml', 'utf8').matchAll(VARIABLE)].map(([, name = '']) => name)),
];

/** What somebody has who filled in .env.example. */
const filled = (name: string): string =>
  name.endsWith('_WEBHOOK') ? 'https://hooks.example.com/filled-in' : `filled-in-${name}`;

export function filledEnvExample(): Record<string, string> {
  const lines = readFileSync('docker/.env.example', 'utf8').matchAll(/^(\w+)=(.*)$/gm);
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value || filled(name)]));
}
