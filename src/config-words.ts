import type { ConfigIssue } from './config-schema.ts';

/** What the schema found, in words for the person who has to mend it. Values are never quoted: they may be secrets. */

type Path = ReadonlyArray<string | number>;

export interface Finding {
  path: Path;
  message: string;
}

export function findings(issue: ConfigIssue, config: unknown): Finding[] {
  const path = issue.path.map((name) => (typeof name === 'number' ? name : String(name)));
  if (issue.code !== 'unrecognized_keys') return [{ path, message: messageOf(issue, valueAt(config, path)) }];
  return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key) }));
}

/** `sources.main.filters.country[1]`; of a key that is no plain word only its beginning, since the rest may be a secret. */
export function describePath(path: Path): string {
  const shown = path.map((name) =>
    typeof name === 'number' ? `[${name}]` : `.${isPlain(name) ? name : wordOf(name)}`,
  );
  return shown.join('').replace(/^\./, '') || 'the file';
}

/** `apiKey:secret` and `apiKey secret` are keys to YAML. */
const isPlain = (name: string): boolean => /^[\w-]{1,60}$/.test(name);
const wordOf = (name: string): string => `${/^[\w-]{0,20}/.exec(name)?.[0]}…`;

const unknownKey = (key: string): string =>
  isPlain(key) ? 'is not a key of the config' : 'is not a key of the config: it may lack a colon with a space after it';

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
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
  if (value === null) return isMapping ? 'has no value: write {}, or take the line out' : 'has no value';
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
