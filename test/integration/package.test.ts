import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Finished, startProcess } from '../support/cli.ts';
import { emptyFolder, npmInstall, pack, type Tarball } from '../support/package.ts';

/** The published package as a user gets it: installed into an empty folder, without install scripts. */

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

let tarball: Tarball;
let folder: string;
beforeAll(async () => {
  tarball = await pack();
  folder = await emptyFolder();
  await npmInstall(folder, [tarball.path]);
});

const env = (): Record<string, string> => ({ PATH: process.env.PATH ?? '', HOME: folder, TMPDIR: folder });
const typed = (file: string, ...args: string[]): Promise<Finished> => startProcess(file, args, folder, env()).done;
const node = (code: string): Promise<Finished> => typed(process.execPath, '--input-type=module', '--eval', `${code}\n`);

describe('the tarball', () => {
  it('contains the program, its types, the schema and the docs', () => {
    expect(tarball.files).toEqual(
      expect.arrayContaining([
        'dist/cli/main.js',
        'dist/bundle/LICENSES.txt',
        'dist/index.js',
        'dist/index.d.ts',
        'config/tributary.yaml',
        'config/tributary.schema.json',
        'docs/operations.md',
        'dbt/dbt_project.yml',
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
      ]),
    );
  });

  it('contains nothing else: no tests, no sources, no state, no secrets', () => {
    const expected =
      /^(dist\/.+\.(js|d\.ts|html|css|svg)|dist\/cli\/help\.json|dist\/bundle\/(package\.json|LICENSES\.txt|.+\.(js\.map|bin))|config\/tributary\.(yaml|schema\.json)|docs\/.+\.(md|svg|png|json|ya?ml)|dbt\/.+\.(sql|yml|md))$/;
    const atTheTop = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];
    expect(tarball.files.filter((file) => !expected.test(file) && !atTheTop.includes(file))).toEqual([]);
    expect(tarball.files.filter((file) => /\btests?\b|\.env/.test(file))).toEqual([]);
  });
});

describe('installed into an empty folder', () => {
  it('is found by its name', async () => {
    expect(await typed('npx', '--no-install', 'tributary', '--version')).toMatchObject({
      code: 0,
      stdout: `${manifest.version}\n`,
    });
  });

  it('syncs, with the bundled Postgres', async () => {
    const { code, stdout, text } = await typed('npx', '--no-install', 'tributary', 'demo', '--json');
    expect(code, text).toBe(0);
    const { streams } = JSON.parse(stdout) as { streams: Array<{ new: number; state: string }> };
    expect(streams.map(({ state, new: rows }) => [state, rows])).toEqual([
      ['done', 12_000],
      ['done', 1500],
      ['done', 500],
    ]);
  });

  it('shows source lines in a stack, with the option of Node', async () => {
    const program = join(folder, 'node_modules/tributary-sync/dist/cli/main.js');
    const printer = `process.stdout.write = () => { console.error(new Error('printed').stack); return true; };`;
    const args = ['--enable-source-maps', '--import', `data:text/javascript,${encodeURIComponent(printer)}`];
    const { code, text } = await typed(process.execPath, ...args, program, '--version');
    expect([code, text]).toEqual([0, expect.stringMatching(/at .*src\/cli\/program\.ts:\d+:\d+/)]);
  });

  it('is a library with one entry point', async () => {
    expect(await node(`console.log(typeof (await import('tributary-sync')).createTributary)`)).toMatchObject({
      stdout: 'function\n',
    });
    const closed = await node(
      `await import('tributary-sync/dist/app/index.js').catch((error) => console.log(error.code))`,
    );
    expect(closed.stdout).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');
  });

  it('has self-contained types, for strict mode without skipLibCheck', async () => {
    const use = (verb: string): string =>
      `import { createTributary } from 'tributary-sync';\nexport const done = createTributary({ config: { sources: {} } }).${verb}();\n`;
    await writeFile(join(folder, 'good.mts'), use('sync'));
    await writeFile(join(folder, 'bad.mts'), use('snyc'));
    const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
    const tsc = (file: string): Promise<Finished> =>
      typed(resolve('node_modules/.bin/tsc'), ...flags, '--typeRoots', resolve('node_modules/@types'), file);
    expect(await tsc('good.mts')).toMatchObject({ code: 0, text: '' });
    expect((await tsc('bad.mts')).text).toContain(`'snyc' does not exist`);
  });
});
