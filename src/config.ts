import { existsSync, readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { type Config, type ConfigIssue, configSchema } from './config-schema.ts';
import { ConfigError } from './model/errors.ts';

export const DEFAULT_CONFIG = 'config/tributary.yaml';

export interface LoadedConfig {
  config: Config;
  /** What was accepted but should be changed: deprecated filters. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a config file. Every fault is reported at once, with its line and column; nothing else happens before that. */
export function loadConfig(path: string, env: Environment): LoadedConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new ConfigError(`the config file ${path} cannot be read (${code})`, {
      next: 'give the file with --config FILE, or run in a folder that has config/tributary.yaml',
    });
  }
  return parseConfig(text, path, env);
}

/** The defaults that commands without a config file go by: no source, and the embedded database. */
export function loadConfigOrDefaults(path: string | undefined, env: Environment): LoadedConfig {
  if (path === undefined && !existsSync(DEFAULT_CONFIG)) return parseConfig('{}', DEFAULT_CONFIG, env);
  return loadConfig(path ?? DEFAULT_CONFIG, env);
}

export function parseConfig(text: string, path: string, env: Environment): LoadedConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const found: Array<{ offset: number; message: string }> = [];
  const report = (offset: number, message: string): void => void found.push({ offset, message });

  for (const error of document.errors) report(error.pos[0], error.message);
  if (found.length === 0) fillIn(document, env, report);
  const parsed = configSchema.safeParse(document.toJS() ?? {});
  if (parsed.success && found.length === 0) return { config: parsed.data, warnings: warningsOf(parsed.data) };

  for (const issue of parsed.error?.issues ?? []) {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
    for (const key of keys) {
      const at = [...issue.path.map(String), ...(key === undefined ? [] : [key])];
      const message = key === undefined ? messageOf(issue) : 'is not a key of the config';
      report(offsetOf(document, at), `${at.join('.') || 'the file'}: ${message}`);
    }
  }
  const faults = found
    .sort((a, b) => a.offset - b.offset)
    .map(({ offset, message }) => {
      const { line, col } = lines.linePos(offset);
      return `${path}:${line}:${col} ${message}`;
    });
  throw new ConfigError(`the config has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:`, {
    faults,
    next: 'mend the lines named above; config/tributary.yaml shows every key',
  });
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Fills in `${NAME}` inside values, after parsing: what the environment holds can never become YAML of its own. */
function fillIn(document: Document, env: Environment, report: (offset: number, message: string) => void): void {
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value !== 'string') return;
      node.value = node.value.replace(VARIABLE, (whole, variable: string, fallback: string | undefined) => {
        const value = env[variable] || fallback;
        if (value === undefined) report(node.range?.[0] ?? 0, `the environment variable ${variable} is not set`);
        return value ?? whole;
      });
    },
  });
}

function messageOf(issue: ConfigIssue): string {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? issue.message;
  return issue.message.endsWith('received undefined') ? 'is missing' : issue.message;
}

/** Where a key stands in the file, or the nearest thing around it that is there. */
function offsetOf(document: Document, path: readonly string[]): number {
  for (let depth = path.length; depth > 0; depth--) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    if (!isMap(parent)) continue;
    const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === path[depth - 1]);
    if (isScalar(pair?.key)) return pair.key.range?.[0] ?? 0;
  }
  return 0;
}

function warningsOf(config: Config): string[] {
  return Object.entries(config.sources).flatMap(([source, { streams }]) =>
    Object.entries(streams).flatMap(([stream, settings]) =>
      (settings?.filters.warnings ?? []).map((warning) => `${source}/${stream}: ${warning}`),
    ),
  );
}
