import { isObject } from './model/extra.ts';

/** Secrets belong into the values that are made for them: names, paths and addresses are shown everywhere. */

/** Shorter ones are words that stand in other places by chance, such as the sandbox's key. */
const SHORTEST = 12;

/** The secrets of a config, as far as it could be read. */
export function secretsOf(config: unknown): string[] {
  if (!isObject(config)) return [];
  const sources = isObject(config.sources) ? Object.values(config.sources) : [];
  const found = [
    ...sources.map((source) => at(source, 'apiKey')),
    at(config.privacy, 'salt'),
    at(config.http, 'token'),
  ];
  return found.filter((secret): secret is string => typeof secret === 'string' && secret.length >= SHORTEST);
}

/** Where a secret stands that is not its place, by what it is; never the text itself. */
export function misplacedSecrets(config: unknown, secrets: readonly string[]): string[] {
  if (!isObject(config)) return [];
  const holds = (text: unknown): boolean =>
    secrets.some((secret) => String(text).toLowerCase().includes(secret.toLowerCase()));
  const parts = ['sources', 'sinks'].flatMap((kind) => {
    const named = config[kind];
    return isObject(named) ? Object.entries(named).map(([name, settings]) => ({ kind, name, settings })) : [];
  });
  return [
    ...parts.filter(({ name }) => holds(name)).map(({ kind }) => `${kind}: a name`),
    ...['baseUrl', 'path', 'schema']
      .filter((key) => parts.some(({ settings }) => holds(at(settings, key) ?? '')))
      .map((key) => `a ${key}`),
  ].map((place) => `${place} holds a key, salt or token of this config, which would be shown in logs and tables`);
}

/** Faults name keys of the file, and a secret may stand there by mistake. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text);

const at = (value: unknown, key: string): unknown => (isObject(value) ? value[key] : undefined);
