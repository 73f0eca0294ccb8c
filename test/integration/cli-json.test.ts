import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Finished } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { DOCUMENTS, FAILURE } from '../support/json-documents.ts';

/** Every `--json` prints one document of the schema, whatever the outcome of the command. */

const RANGE = ['--from', '3d', '--to', 'now'];

const { place, sandbox, tributary } = await commandsOn(
  { rows: { clicks: 40, leads: 10, sales: 5 }, days: 5 },
  {
    settings: { requestsPerSecond: 100 },
    rest: { sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: './lake' } } },
  },
);
const [lead] = sandbox.service.events('leads');
sandbox.service.add('leads', { ...lead, eventId: 'no-time', timestamp: 'soon' });

const run = (command: string, ...args: string[]): Promise<Finished> =>
  tributary(...command.split(' '), '--json', ...args);

/** In order: each depends on the state that the previous ones left. */
const COMMANDS: ReadonlyArray<[name: string, args: string[], code: number]> = [
  ['sync', [], 0],
  ['doctor', [], 0],
  ['status', [], 0],
  ['runs', [], 0],
  ['query', ['select stream, complete_through from attribution.coverage'], 0],
  ['cursor get', [], 0],
  ['verify', RANGE, 0],
  ['backfill --dry-run', [...RANGE, '--force'], 0],
  ['backfill', ['leads', ...RANGE, '--force'], 0],
  ['backfill --queue', ['leads', ...RANGE, '--force'], 0],
  ['backfill list', [], 0],
  ['export', ['leads', ...RANGE, '--out', 'leads.csv'], 0],
  ['quarantine list', [], 0],
  ['quarantine show', ['1'], 0],
  ['quarantine retry', ['1'], 4],
  ['quarantine drop', ['--all', '--yes'], 0],
  ['cursor set', ['leads', '--to', '1d'], 0],
  ['cursor reset', ['sales', '--yes'], 0],
  ['forget', ['--source', 'main', '--customer', 'nobody', '--unseen', '--yes'], 0],
  ['runs audit', [], 0],
  ['config check', [], 0],
  ['config print', [], 0],
  ['maintain', [], 0],
];

describe('--json', () => {
  it.each(COMMANDS)('%s', async (name, args, code) => {
    const { stdout, stderr, ...finished } = await run(name, ...args);
    expect(finished.code, stderr).toBe(code);
    expect(DOCUMENTS[name]?.safeParse(JSON.parse(stdout)).error).toBeUndefined();
  });

  it('prints errors as documents on standard output: usage, config, and refusals of the service', async () => {
    const failed = async (finished: Promise<Finished>) => {
      const { code, stdout, stderr } = await finished;
      expect(stderr).not.toBe('');
      return { code, ...FAILURE.parse(JSON.parse(stdout)) };
    };
    expect(await failed(run('sync', '--nonsense'))).toMatchObject({
      code: 2,
      command: 'sync',
      error: { message: expect.stringMatching(/^unknown option '--nonsense'/), exitCode: 2 },
    });
    await place.config('sources: { main: { plan: gold } }', 'bad.yaml');
    const bad = place.call(['config', 'check', '--json', '--config', 'bad.yaml']);
    expect(await failed(bad)).toMatchObject({ code: 2, command: 'config check', error: { exitCode: 2 } });
    expect((await failed(bad)).error.faults.length).toBeGreaterThan(1);
    sandbox.service.faults.add({ status: 403, when: ({ query }) => query.event === 'sales', times: 1000 });
    const refused = await failed(run('sync', 'sales'));
    sandbox.service.faults.clear();
    expect(refused).toMatchObject({ code: 3, command: 'sync', error: { exitCode: 3 } });
  });

  it('docs/json-schema.json names every command that has it', async () => {
    const { $defs } = JSON.parse(await readFile(join('docs', 'json-schema.json'), 'utf8')) as { $defs: object };
    expect(Object.keys($defs)).toEqual([...Object.keys(DOCUMENTS), 'failure']);
  });
});
