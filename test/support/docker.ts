import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** Parses the files of docker/ without a Docker engine, supporting only the grammar that they use. */

export interface Instruction {
  /** FROM, COPY, RUN … */
  word: string;
  /** The rest of the instruction, on one line. */
  rest: string;
}

export interface Stage {
  name: string | undefined;
  base: string;
  instructions: Instruction[];
}

/** Arguments are those of `docker build --build-arg`, or their defaults. */
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

/** The argument of an instruction in a stage; the last one counts, as in Docker. */
export const said = (stage: Stage | undefined, word: string): string | undefined =>
  stage?.instructions.findLast((each) => each.word === word)?.rest;

/** An instruction in exec form, `["node", "x"]`: the shell form would start a shell before the process. */
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

/** compose.yaml with its variables, as `docker compose` fills them in. Throws if a required one is missing. */
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

/** The variables after filling in .env.example. */
const filled = (name: string): string =>
  name.endsWith('_WEBHOOK') ? 'https://hooks.example.com/filled-in' : `filled-in-${name}`;

export function filledEnvExample(): Record<string, string> {
  const lines = readFileSync('docker/.env.example', 'utf8').matchAll(/^(\w+)=(.*)$/gm);
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value || filled(name)]));
}
