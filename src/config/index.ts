import { existsSync, readFileSync } from 'node:fs';
import { ConfigError } from '../model/errors.ts';
import { type Environment, readDocument } from './document.ts';
import { describePath, findings, misplacedSecrets, secretsOf, withoutSecrets } from './faults.ts';
import { type Config, configSchema } from './schema.ts';

export type { Config, ConfigInput, SourceConfig, StreamConfig } from './schema.ts';

export const DEFAULT_CONFIG = 'config/tributary.yaml';

export interface LoadedConfig {
  config: Config;
  /** What was accepted but should be changed: deprecated filters. */
  warnings: string[];
}

/** Reads a config file. Every fault is reported at once, with its line and column; nothing else happens before that. */
export function loadConfig(path: string, env: Environment): LoadedConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new ConfigError(`the config file ${path} cannot be read (${code})`, {
      next: 'write one with tributary init, or name yours with --config FILE',
    });
  }
  return parseConfig(text, path, env);
}

/** The defaults that commands without a config file go by: no source, and the embedded database. */
export function loadConfigOrDefaults(path: string | undefined, env: Environment): LoadedConfig {
  if (path === undefined && !existsSync(DEFAULT_CONFIG)) return parseConfig('', DEFAULT_CONFIG, env);
  return loadConfig(path ?? DEFAULT_CONFIG, env);
}

export function parseConfig(text: string, path: string, env: Environment): LoadedConfig {
  const document = readDocument(text, env);
  const found = document.faults.map(({ offset, message }) => ({ offset, message }));
  const secrets = secretsOf(document.value);
  for (const message of misplacedSecrets(document.value, secrets)) found.push({ offset: 0, message });
  // Judging the content of what is no sound YAML would only add faults that are none.
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
  throw new ConfigError(`the config has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:`, {
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
