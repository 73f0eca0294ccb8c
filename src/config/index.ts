import { existsSync, readFileSync } from 'node:fs';
import { nearest } from '../api/filters.ts';
import { ConfigError } from '../model/errors.ts';
import { isObject } from '../model/json.ts';
import { type Environment, readDocument } from './document.ts';
import { type Config, type ConfigIssue, configJsonSchema, configSchema } from './schema.ts';
import { isSecretKey } from './values.ts';

export type { Config, ConfigInput, LinksConfig, SourceConfig, StreamConfig } from './schema.ts';

export const DEFAULT_CONFIG = 'config/tributary.yaml';

export interface LoadedConfig {
  config: Config;
  /** Accepted settings that should be changed, such as deprecated filters. */
  warnings: string[];
}

/** Reads a config file. Reports all faults at once, with line and column, before anything else is done. */
export function loadConfig(path: string, env: Environment, options?: ReadOptions): LoadedConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    const says =
      code === 'ENOENT' ? `there is no config file ${path}` : `the config file ${path} cannot be read (${code})`;
    throw new ConfigError(says, { next: 'write one with tributary init, or name yours with --config FILE' });
  }
  return parseConfig(text, path, env, options);
}

/** The defaults for commands without a config file: no source, and the embedded database. */
export function loadConfigOrDefaults(path: string | undefined, env: Environment, options?: ReadOptions): LoadedConfig {
  if (path === undefined && !existsSync(DEFAULT_CONFIG)) return parseConfig('', DEFAULT_CONFIG, env);
  return loadConfig(path ?? DEFAULT_CONFIG, env, options);
}

interface ReadOptions {
  /** False for commands that send no requests: the variable of an API key may be unset. */
  needsKeys?: boolean;
}

export function parseConfig(
  text: string,
  path: string,
  env: Environment,
  { needsKeys = true }: ReadOptions = {},
): LoadedConfig {
  const read = readDocument(text, env);
  const isIgnored = ({ variable, key }: (typeof read.faults)[number]): boolean =>
    !needsKeys && variable !== undefined && key === 'apiKey';
  const document = { ...read, faults: read.faults.filter((fault) => !isIgnored(fault)) };
  const found = document.faults.map(({ offset, message }) => ({ offset, message }));
  const secrets = secretsOf(document.value);
  for (const message of misplacedSecrets(document.value, secrets)) found.push({ offset: 0, message });
  // Checking the content of invalid YAML would only add false faults.
  if (!document.faults.some(({ kind }) => kind === 'form')) {
    const parsed = configSchema.safeParse(document.value ?? {});
    if (parsed.success && found.length === 0) return { config: parsed.data, warnings: warningsOf(parsed.data) };
    for (const finding of (parsed.error?.issues ?? []).flatMap((issue) => findings(issue, document.value))) {
      if (document.isUnfilled(finding.path)) continue;
      const message = `${describePath(finding.path)}: ${finding.message}`;
      found.push({ offset: document.offsetOf(finding.path), message });
    }
  }
  const faults = found
    .sort((a, b) => a.offset - b.offset)
    .map(({ offset, message }) => {
      const { line, col } = document.placeOf(offset);
      return `${path}:${line}:${col} ${withoutSecrets(message, secrets)}`;
    });
  throw new ConfigError(`the config has ${faults.length === 1 ? 'an error' : `${faults.length} errors`}:`, {
    faults,
    next:
      document.faults.every(({ variable }) => variable) && document.faults.length === faults.length
        ? `set ${[...new Set(document.faults.map(({ variable }) => variable))].join(', ')} in the environment, and run it again`
        : 'fix the lines named above; config/tributary.yaml of the project shows every key',
  });
}

function warningsOf(config: Config): string[] {
  return Object.entries(config.sources).flatMap(([source, { streams }]) =>
    Object.entries(streams).flatMap(([stream, settings]) =>
      (settings?.filters.warnings ?? []).map((warning) => `${source}/${stream}: ${warning}`),
    ),
  );
}

type Path = ReadonlyArray<string | number>;

/** The schema's issues as messages for the user. They never quote values, which may be secrets. */
function findings(issue: ConfigIssue, config: unknown): Array<{ path: Path; message: string }> {
  const path = issue.path.map((name) => (typeof name === 'number' ? name : String(name)));
  if (issue.code !== 'unrecognized_keys') return [{ path, message: messageOf(issue, valueAt(config, path)) }];
  return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key, keysAt(path)) }));
}

/** `sources.main.filters.country[1]`. A key that is not a plain word is truncated, because the rest may be a secret. */
function describePath(path: Path): string {
  const shown = path.map((name) =>
    typeof name === 'number' ? `[${name}]` : `.${isPlain(name) ? name : truncated(name)}`,
  );
  return shown.join('').replace(/^\./, '') || 'the file';
}

/** YAML parses `apiKey:secret` and `apiKey secret` as keys. */
const isPlain = (name: string): boolean => /^[\w-]{1,60}$/.test(name);
const truncated = (name: string): string => `${/^[\w-]{0,20}/.exec(name)?.[0]}…`;

function unknownKey(key: string, known: readonly string[]): string {
  if (!isPlain(key)) return 'is not a key of the config: a colon followed by a space may be missing';
  // A key of another sink or catalog type would be suggested for itself.
  const near = known.includes(key) ? undefined : nearest(key, known);
  return `is not a key of the config${near ? `: did you mean ${near}?` : ''}`;
}

function keysAt(path: Path): string[] {
  type Part = { properties?: Record<string, Part>; additionalProperties?: Part; anyOf?: Part[]; oneOf?: Part[] };
  let parts: Part[] = [configJsonSchema() as Part];
  const choices = (part: Part): Part[] => [part, ...[...(part.anyOf ?? []), ...(part.oneOf ?? [])].flatMap(choices)];
  for (const name of path) {
    parts = parts.flatMap(choices).flatMap((part) => part.properties?.[name] ?? part.additionalProperties ?? []);
  }
  return [...new Set(parts.flatMap(choices).flatMap(({ properties = {} }) => Object.keys(properties)))];
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'a mapping of keys to values',
  record: 'a mapping of keys to values',
  array: 'a list',
};

function messageOf(issue: ConfigIssue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    case 'invalid_value':
      return `${value === undefined ? 'is missing: it' : ''} must be one of ${issue.values.join(', ')}`.trim();
    case 'invalid_union':
      return value === undefined ? `is missing: it ${issue.message}` : issue.message;
    case 'invalid_type':
      return wrongKind(issue.expected, value, /^Invalid input/.test(issue.message) ? undefined : issue.message);
    default:
      return issue.message;
  }
}

function wrongKind(expected: string, value: unknown, wanted: string | undefined): string {
  const isMapping = expected === 'object' || expected === 'record';
  if (value === undefined) return 'is missing';
  if (value === null) return isMapping ? 'has no value: write {}, or remove the line' : 'has no value';
  if (wanted) return wanted;
  const found = KINDS[Array.isArray(value) ? 'array' : typeof value];
  const quotes = expected === 'string' && typeof value !== 'object' ? ': put it in quotes' : '';
  return `must be ${KINDS[expected] ?? expected}, not ${found ?? 'something else'}${quotes}`;
}

function valueAt(config: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string | number, unknown>)[name]
        : undefined,
    config,
  );
}

/** Shorter secrets, such as the sandbox's key, may occur in other values by chance. */
const SHORTEST = 12;

/** The secrets of a config, as far as it could be parsed. No config is deeper than `depth`, but aliases may nest without end. */
function secretsOf(value: unknown, key = '', depth = 5): string[] {
  if (typeof value === 'string') return isSecretKey(key) && value.length >= SHORTEST ? [value] : [];
  if (!isObject(value) || depth === 0) return [];
  return Object.entries(value).flatMap(([name, each]) => secretsOf(each, name, depth - 1));
}

/** Faults for secrets in names, paths and addresses, which are printed and logged. They name the place, never the secret. */
function misplacedSecrets(config: unknown, secrets: readonly string[]): string[] {
  if (!isObject(config)) return [];
  const holds = (value: unknown): boolean =>
    typeof value === 'string' && secrets.some((secret) => value.toLowerCase().includes(secret.toLowerCase()));
  const parts = ['sources', 'sinks'].flatMap((kind) => {
    const named = config[kind];
    return isObject(named) ? Object.entries(named).map(([name, settings]) => ({ kind, name, settings })) : [];
  });
  return [
    ...parts.filter(({ name }) => holds(name)).map(({ kind }) => `${kind}: a name`),
    ...['baseUrl', 'path', 'schema']
      .filter((key) => parts.some(({ settings }) => holds(valueAt(settings, [key]))))
      .map((key) => `a ${key}`),
  ].map((place) => `${place} holds a key, salt or token of this config, which would be shown in logs and tables`);
}

/** Faults quote keys of the file, and a user may have put a secret in place of a key. */
const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text);
