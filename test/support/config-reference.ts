import { z } from 'zod';
import { FILTERS } from '../../src/api/filters.ts';
import { parseConfig } from '../../src/config/index.ts';
import { printable } from '../../src/config/print.ts';
import { configSchema } from '../../src/config/schema.ts';

/** docs/configuration.md, made from the schema: a key without a sentence of its own is an error. */

interface Schema {
  description?: string;
  type?: string;
  const?: string;
  enum?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
}

const INTRODUCTION = `# Configuration

This page lists every key and is generated from the code. [\`config/tributary.yaml\`](../config/tributary.yaml) shows them in one commented file; \`tributary init\` writes one for you.

- Commands read \`config/tributary.yaml\` in the current folder, or the file given by \`--config\`.
- \`\${NAME}\` reads an environment variable, which must be set and not empty; \`\${NAME:-default}\` has a default. It can replace values, but not keys or YAML. Keep secrets
  in the environment, not in the file.
- \`tributary config check\` lists all errors with line and column. Unknown keys are errors.
- \`tributary config print\` shows the config with defaults filled in and secrets masked.
- \`tributary init\` writes \`tributary.schema.json\` next to the config, for editors that validate YAML against a schema.

A *duration* is \`90s\`, \`15m\`, \`1h\` or \`7d\`. Names of sources and sinks consist of lower-case letters, digits, \`_\` and \`-\`. They become part of keys and paths and
cannot be changed later.

Only in the environment: \`TRIBUTARY_LOG\` (\`debug\`, \`info\`, \`warn\` or \`error\`; \`warn\` by default), \`NO_COLOR\`, and
\`OTEL_EXPORTER_OTLP_ENDPOINT\` for [traces](monitoring.md#traces).
`;

export function configurationPage(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as Schema;
  const { sources, sinks, ...rest } = schema.properties ?? {};
  const source = sources?.additionalProperties;
  const { streams, links, ...ofSource } = source?.properties ?? {};
  const sections = [
    section(
      'sources.‹name›',
      sentence(told('sources', sources)),
      rowsOf({ ...source, properties: ofSource }, ['sources', 'main']),
    ),
    section(
      'sources.‹name›.streams.‹stream›',
      '`clicks`, `leads` and `sales`. A stream that is left out is not synced; without `streams`, all three are.',
      rowsOf(sharedByAll(streams), ['sources', 'main', 'streams', 'clicks']),
    ),
    filterSection(),
    section('sources.‹name›.links', sentence(told('links', links)), rowsOf(links ?? {}, ['sources', 'main', 'links'])),
    section(
      'sinks.‹name›',
      sentence(told('sinks', sinks)),
      (sinks?.additionalProperties?.oneOf ?? []).flatMap(rowsOfSink),
    ),
    section(
      Object.keys(rest).join(', '),
      'Each may be left out.',
      Object.entries(rest).flatMap(([name, part]) => [
        `| **\`${name}\`** | | | ${told(name, part)} |`,
        ...rowsOf(part, [name], `${name}.`),
      ]),
    ),
  ];
  return [INTRODUCTION, ...sections].join('\n');
}

/** The three streams have the same keys. Where a sentence differs, by a default, both are shown. */
function sharedByAll(streams: Schema | undefined): Schema {
  const all = Object.entries(streams?.properties ?? {});
  const [[, first] = ['', {} as Schema]] = all;
  const properties = Object.entries(first.properties ?? {}).map(([key, part]): [string, Schema] => {
    const sentences = new Set(all.map(([, stream]) => stream.properties?.[key]?.description));
    if (sentences.size < 2) return [key, part];
    const defaults = all.map(([name, stream]) => `${after(stream.properties?.[key]?.description)} for ${name}`);
    return [key, { ...part, description: `${before(part.description)}; default ${defaults.join(', ')}` }];
  });
  return { ...first, properties: Object.fromEntries(properties) };
}

const DEFAULT = '; default ';
const before = (text = ''): string => text.split(DEFAULT)[0] ?? '';
const after = (text = ''): string => text.split(DEFAULT)[1] ?? '';

function rowsOfSink(sink: Schema): string[] {
  const type = sink.properties?.type?.const ?? '';
  const { type: _, ...properties } = sink.properties ?? {};
  return [`| **\`type: ${type}\`** | | | |`, ...rowsOf({ ...sink, properties }, ['sinks', type])];
}

const rowsOf = ({ properties, required }: Schema, path: readonly string[], prefix = ''): string[] =>
  Object.entries(properties ?? {}).map(([key, part]) => {
    const shown = required?.includes(key) ? '*required*' : defaultAt([...path, key]);
    return `| \`${prefix}${key}\` | ${values(key, part)} | ${shown} | ${told([...path, key].join('.'), part)} |`;
  });

function section(title: string, intro: string, rows: readonly string[]): string {
  return `## ${title}\n\n${intro}\n\n| key | value | default | what it is for |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

/** From the table of the contract's parameters, which also checks them. Those that are used alike share a row. */
function filterSection(): string {
  const alike = new Map<string, string[]>();
  for (const { name, type, closed, values: known, form, prefix, streams, advanced, deprecated, doc } of FILTERS) {
    const words = known?.map((word) => `\`${word}\``).join(' ');
    const open = type === 'string' && words && !closed ? `${words}; others are sent with a note` : words;
    const value = open ?? form?.text ?? (prefix ? `text from \`${prefix}\` on` : type === 'string' ? 'text' : type);
    const use = [value, advanced ? 'yes' : '', streams?.join(', ') ?? 'all'];
    const key = use.map((cell) => cell.replaceAll('|', '\\|')).join(' | ');
    const said = [repeats(name, doc) ? '' : doc, deprecated ? `(deprecated: ${deprecated})` : ''].filter(Boolean);
    const what = [`\`${name}\``, ...said].join(' ').replaceAll('|', '\\|');
    alike.set(key, [...(alike.get(key) ?? []), what]);
  }
  const rows = [...alike].map(([use, names]) => `| ${names.join('<br>')} | ${use} |`);
  return `${FILTER_INTRODUCTION}\n${rows.join('\n')}\n`;
}

/** `linkId`: "link ID" says nothing that the name does not. */
const repeats = (name: string, doc: string): boolean =>
  doc.toLowerCase().replaceAll(' ', '') === name.toLowerCase().replace('_', '');

const FILTER_INTRODUCTION = `## sources.‹name›.streams.‹stream›.filters

Query parameters of \`GET /events\`, also for \`export --filter name=value\`. If *several* is yes, a list matches any of its values, and \`-\` before
every value excludes them: \`country: [US, CA]\`, \`trigger: -qr\`, \`[-US, -CA]\`. The service separates values by commas, so you cannot filter by a value that contains one
(\`Washington, D.C.\`). An invalid value is an error: \`country: UK\` asks whether you meant \`GB\`.
\`key\` needs exactly one \`domain\`. If you change the filters of a stream, it is read again from \`since\`.

Rows are compared with the filters: nothing is certified once an event arrives that a filter excludes, or while no event has matched a filter.
For \`root\`, \`saleType\`, \`query\`, \`groupId\` and \`partnerTagId\`, no column shows whether the service applies them; commands say so.

| filters | value | several | streams |
|---|---|---|---|`;

function told(name: string, part: Schema | undefined): string {
  if (!part?.description) throw new Error(`${name} has no description in src/config/schema.ts`);
  return part.description.replaceAll('|', '\\|');
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** The schema knows them as text: an editor's idea of a duration is P7D. */
const DURATIONS = ['every', 'maxLag', 'lookback', 'settle', 'resweep'];

function values(key: string, { enum: words, anyOf, type }: Schema): string {
  if (DURATIONS.includes(key)) return 'duration';
  if (words) return words.map((word) => `\`${word}\``).join(' ');
  if (anyOf?.some((each) => each.type === 'number')) return 'number';
  if (type === 'array') return 'list';
  if (type === 'boolean') return 'boolean';
  return type === 'object' || anyOf?.some((each) => each.type === 'object') ? 'map' : 'text';
}

/** As it is understood where nothing was said: the default of the code, not of a description. */
const understood = printable(
  parseConfig(
    JSON.stringify({
      sources: { main: { baseUrl: 'https://api.example.com', apiKey: 'k', plan: 'pro' } },
      sinks: { postgres: { type: 'postgres' }, parquet: { type: 'parquet', path: 'p' } },
    }),
    'defaults.yaml',
    {},
  ).config,
);

/** Where a plan, another key or a connection decides, there is no one default. */
const DEPENDS = /requestsPerSecond$|\bevery$/;

function defaultAt(path: readonly string[]): string {
  if (DEPENDS.test(path.join('.'))) return '';
  let value: unknown = understood;
  for (const key of path)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : '';
  return typeof value === 'string' || typeof value === 'number' ? (value === '' ? '' : `\`${value}\``) : '';
}
