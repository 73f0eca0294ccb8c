import { describe, expect, it } from 'vitest';
import { type Finished, freshPlace } from '../support/cli.ts';
import { serve, type TestServer } from '../support/http-server.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Answers of the service other than rows, with the built binary: refusals, and how long to wait. */

const answering = (status: number, headers: Record<string, string>, error: object): Promise<TestServer> =>
  serve((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error }));
  });

const configFor = ({ baseUrl }: TestServer, url: string): string =>
  `sources: { main: { baseUrl: "${baseUrl}", apiKey: a-key, plan: business } }\nstate: { url: "${url}" }\n`;

const inOneLine = ({ text }: Finished): string => text.replaceAll(/\s+/g, ' ');

describe('a refusal', () => {
  it('is shown with the page that explains it, also by doctor, which claims nothing about a server that sent no row', async () => {
    const docs = 'https://docs.example.com/errors#unauthorized';
    const service = await answering(401, {}, { code: 'unauthorized', message: 'who are you?', doc_url: docs });
    const [place, database] = await Promise.all([freshPlace(), freshDatabase()]);
    await place.config(configFor(service, database.url));
    const synced = await place.run(['sync', '--config', 't.yaml']);
    expect(synced.code).toBe(3);
    expect(inOneLine(synced)).toContain(`the service answered 401: who are you?`);
    expect(inOneLine(synced)).toContain(`the service explains it at ${docs}`);
    const looked = await place.run(['doctor', '--config', 't.yaml']);
    expect(looked.code).toBe(3);
    expect(inOneLine(looked)).toContain(`the service explains it at ${docs}`);
    expect(inOneLine(looked)).not.toContain('the service keeps start, end');
    await database.drop();
  });
});

describe('a refusal of one of two sources', () => {
  it('is named by verify and by the price of a backfill; verify compares the other source', async () => {
    const refusing = await answering(422, {}, { code: 'unprocessable_entity', message: 'end lies in the future' });
    const [sandbox, place, database] = await Promise.all([
      smallSandbox({ rows: { clicks: 50 } }),
      freshPlace(),
      freshDatabase(),
    ]);
    await place.config(
      `sources:
  first: { baseUrl: "${refusing.baseUrl}", apiKey: a-key, plan: business, streams: { clicks: {} } }
  second: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: business, streams: { clicks: {} }, since: 5d }
state: { url: "${database.url}" }
`,
    );
    await place.run(['sync', '--config', 't.yaml', '--source', 'second']);
    const verified = await place.run(['verify', '--config', 't.yaml', '--from', '3d', '--to', 'now']);
    expect(verified.code).toBe(3);
    expect(inOneLine(verified)).toContain('first/clicks: the service answered 422: end lies in the future');
    expect(inOneLine(verified)).toMatch(/warehouse: all \d+ days match/);
    const json = await place.run(['verify', '--config', 't.yaml', '--from', '3d', '--to', 'now', '--json']);
    const { streams } = JSON.parse(json.stdout);
    expect(streams.map(({ source, error }: { source: string; error: unknown }) => [source, error !== null])).toEqual([
      ['first', true],
      ['second', false],
    ]);
    const priced = await place.run(['backfill', '--dry-run', '--config', 't.yaml', '--from', '3d', '--to', 'now']);
    expect(priced.code).toBe(3);
    expect(inOneLine(priced)).toContain('first/clicks: the service answered 422: end lies in the future');
    await Promise.all([sandbox.close(), database.drop()]);
  });
});
