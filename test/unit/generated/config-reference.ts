import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { FILTERS } from '../../../src/api/filters.ts';
import { parseConfig } from '../../../src/config/index.ts';
import { printable } from '../../../src/config/print.ts';
import { configSchema } from '../../../src/config/schema.ts';

/** docs/configuration.md from the schema: a key without a description is an error. */

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

/** Its prose is written by hand; the tables and their headings are generated. */
const PAGE = readFileSync('docs/configuration.md', 'utf8');
const INTRODUCTION = PAGE.slice(0, PAGE.indexOf('## '));
const FILTER_INTRODUCTION = /^## .*\.filters\n[^#]*?\|---\|---\|---\|---\|$/m.exec(PAGE)?.[0];
export function configurationPage(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as Schema;
  const { sources, sinks, ...rest } = schema.properties ?? {};
  const source = sources?.additionalProperties;
  const { streams, links, ...ofSource } = source?.properties ?? {};
  const sections = [
    section(
      'sources.‹name›',
      sentence(textOf('sources', sources)),
      rowsOf({ ...source, properties: ofSource }, ['sources', 'main']),
    ),
    section(
      'sources.‹name›.streams.‹stream›',
      '`clicks`, `leads` and `sales`. A stream that is left out is not synced; without `streams`, all three are.',
      rowsOf(sharedByAll(streams), ['sources', 'main', 'streams', 'clicks']),
    ),
    filterSection(),
    section(
      'sources.‹name›.links',
      sentence(textOf('links', links)),
      rowsOf(links ?? {}, ['sources', 'main', 'links']),
    ),
    section(
      'sinks.‹name›',
      sentence(textOf('sinks', sinks)),
      (sinks?.additionalProperties?.oneOf ?? []).flatMap(rowsOfSink),
    ),
    section(
      Object.keys(rest).join(', '),
      'Each may be left out.',
      Object.entries(rest).flatMap(([name, part]) => [
        `| **\`${name}\`** | | | ${textOf(name, part)} |`,
        ...rowsOf(part, [name], `${name}.`),
      ]),
    ),
  ];
  return INTRODUCTION + sections.join('\n');
}

/** The three streams have the same keys. Both descriptions are shown if they differ, by a default. */
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
    return `| \`${prefix}${key}\` | ${values(key, part)} | ${shown} | ${textOf([...path, key].join('.'), part)} |`;
  });

function section(title: string, intro: string, rows: readonly string[]): string {
  return `## ${title}\n\n${intro}\n\n| key | value | default | what it is for |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

/** From the table of the contract's parameters, which this also checks. Parameters used alike share a row. */
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

/** `linkId`: "link ID" repeats the name. */
const repeats = (name: string, doc: string): boolean =>
  doc.toLowerCase().replaceAll(' ', '') === name.toLowerCase().replace('_', '');

function textOf(name: string, part: Schema | undefined): string {
  if (!part?.description) throw new Error(`${name} has no description in src/config/schema.ts`);
  return part.description.replaceAll('|', '\\|');
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Text in the schema: an editor expects a duration such as P7D. */
const DURATIONS = ['every', 'maxLag', 'lookback', 'settle', 'resweep'];

function values(key: string, { enum: words, anyOf, type }: Schema): string {
  if (DURATIONS.includes(key)) return 'duration';
  if (words) return words.map((word) => `\`${word}\``).join(' ');
  if (anyOf?.some((each) => each.type === 'number')) return 'number';
  if (type === 'array') return 'list';
  if (type === 'boolean') return 'boolean';
  return type === 'object' || anyOf?.some((each) => each.type === 'object') ? 'map' : 'text';
}

/** The effective default, from the code rather than from a description. */
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

/** The default depends on a plan, another key or a connection. */
const DEPENDS = /requestsPerSecond$|\bevery$/;

function defaultAt(path: readonly string[]): string {
  if (DEPENDS.test(path.join('.'))) return '';
  let value: unknown = understood;
  for (const key of path)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : '';
  return typeof value === 'string' || typeof value === 'number' ? (value === '' ? '' : `\`${value}\``) : '';
}
