import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { closed, listening } from '../support/front.ts';
import { HOSTILE_NAMES, hostileRecord } from '../support/hostile-names.ts';

/** The corpus of bad input: files under test/corpus, named by their trap, and a real HTTP server that sends them. */

/** The service's clock, and the time of the corpus's events. */
export const SERVICE_NOW = Date.UTC(2026, 10, 15, 12);
export const EVENT_TIME = Date.UTC(2026, 10, 14, 10, 30);

const FOLDERS = { records: '.json-text', answers: '.http' } as const;
export type Folder = keyof typeof FOLDERS;

export const trapsIn = (folder: Folder): string[] =>
  readdirSync(`test/corpus/${folder}`)
    .map((file) => file.slice(0, -FOLDERS[folder].length))
    .sort();

/** Assigns the same outcome to each of these traps. */
export const alike = <T>(names: string, trap: T): Record<string, T> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, trap]));

/** A file as it is sent. `<<600*x>>` stands for 600 times x, so that large traps are small files. */
export function readTrap(folder: Folder, trap: string): Buffer {
  const text = readFileSync(`test/corpus/${folder}/${trap}${FOLDERS[folder]}`).toString('latin1');
  return Buffer.from(
    text.replace(/<<(\d+)\*(.+?)>>/g, (_, count: string, what: string) => what.repeat(Number(count))),
    'latin1',
  );
}

/** A sound event beside every trap: it must always be stored. */
export const BYSTANDER = 'bystander';
const bystander = (): string =>
  JSON.stringify({
    eventId: BYSTANDER,
    timestamp: new Date(EVENT_TIME + 60_000).toISOString(),
    click: { id: BYSTANDER },
  });

export type CorpusService = Awaited<ReturnType<typeof serveCorpus>>;

/** Answers `/<folder>/<trap>/events`: a sound service, except for one record, or for an answer that is sent so many times. */
export async function serveCorpus(times: (trap: string) => number = () => 1) {
  const asked = new Map<string, number>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://corpus');
    const [, folder = '', trap = ''] = url.pathname.split('/');
    const before = asked.get(trap) ?? 0;
    asked.set(trap, before + 1);
    if (folder === 'answers' && before < times(trap)) {
      const key = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
      response.socket?.end(onTheWire(readTrap('answers', trap), key));
      return;
    }
    const bad =
      folder === 'records'
        ? readTrap('records', trap).toString('utf8')
        : folder === 'names'
          ? namesOf(trap)
          : undefined;
    response.setHeader('date', new Date(SERVICE_NOW).toUTCString());
    response.setHeader('content-type', 'application/json').end(pageOf(url.searchParams, bad));
  });
  const port = await listening(server);
  return {
    /** Each trap has the address of its own service, so that they do not interfere. */
    baseUrlOf: (folder: Folder | 'names', trap: string) => `http://127.0.0.1:${port}/${folder}/${trap}`,
    /** The number of requests for a trap. */
    requests: (trap: string) => asked.get(trap) ?? 0,
    close: () => closed(server),
  };
}

/** A record with the hostile names of a kind, or with all of them, and one unusable record. */
function namesOf(trap: string): string {
  const record = hostileRecord('ev_1', HOSTILE_NAMES[trap] ?? Object.values(HOSTILE_NAMES).flat(), EVENT_TIME);
  return JSON.stringify([record, { ...record, eventId: 'ev_2', timestamp: null }]).slice(1, -1);
}

/** The service sorts by its own time of a record, not by the record's. */
function pageOf(query: URLSearchParams, bad: string | undefined): string {
  const events = [
    ...(bad === undefined ? [] : [{ at: EVENT_TIME, text: bad }]),
    { at: EVENT_TIME + 60_000, text: bystander() },
  ];
  const [start, end] = ['start', 'end'].map((name) => Date.parse(query.get(name) ?? ''));
  const limit = Number(query.get('limit'));
  const from = (Number(query.get('page')) - 1) * limit;
  const found = events.filter(({ at }) => at >= (start ?? 0) && at <= (end ?? 0));
  if (query.get('sortOrder') === 'desc') found.reverse();
  return `[${found.slice(from, from + limit).map(({ text }) => text)}]`;
}

/** Headers are stored with LF line ends, bodies unchanged. `{{key}}` is the key of the request. */
function onTheWire(file: Buffer, apiKey: string): Buffer {
  const end = file.indexOf('\n\n');
  const head = file.subarray(0, end).toString('latin1').replaceAll('\n', '\r\n');
  const body = file.subarray(end + 2);
  const filled = body.includes('{{key}}') ? Buffer.from(body.toString('latin1').replaceAll('{{key}}', apiKey)) : body;
  return Buffer.concat([Buffer.from(`${head}\r\nconnection: close\r\n\r\n`, 'latin1'), filled]);
}
