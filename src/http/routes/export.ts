import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { FILTERS } from '../../api/filters.ts';
import { readEvolved } from '../../cursor/columns.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { Cancelled, Fault } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { STREAMS, type StreamName } from '../../model/streams.ts';
import { type ByteTarget, createRowFile, FORMATS, type Format } from '../../sinks/export.ts';
import type { StreamJob } from '../../sync/job.ts';
import { exportStream } from '../../sync/maintain/export-stream.ts';
import { date, HttpError, shortText, stream, z } from '../answers.ts';
import { type ControlDeps, chooseStreams, chooseWindow, isoDay } from '../dependencies.ts';
import { FileAnswer, type Route, route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'streams' | 'narrow' | 'log'>;

const TYPES: Readonly<Record<Format, string>> = {
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson',
};

/** An export keeps about 100 bytes per event until it ends: these limits bound the memory of exports next to the worker. */
const MOST_AT_ONCE = 2;
const MOST_EVENTS = 2_000_000;

const ExportQuery = z.strictObject({
  source: shortText.optional(),
  from: date,
  to: date,
  format: z.enum(FORMATS),
  filter: z
    .array(
      shortText.regex(
        new RegExp(`^(?:${FILTERS.map(({ name }) => name).join('|')})=`),
        'is not NAME=VALUE with a filter of the service: write filter=country=DE',
      ),
    )
    .max(20)
    .default([])
    .describe("NAME=VALUE, a query parameter of the service, in addition to the config's"),
  keepFormulas: z.boolean().default(false).describe('CSV: leaves cells that begin with = + - @ as they are'),
});

/** A header must be ASCII, but a filter may contain any text. */
const asciiJson = (texts: readonly string[]): string =>
  JSON.stringify(texts).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

const MOST_DOUBTS = 3;

export function exportRoutes(deps: Deps): Route[] {
  let running = 0;
  return [
    route('GET /api/export/{stream}', {
      summary:
        'A range of dates as one file, read from the service while it is downloaded. The trailer x-tributary-certified says whether every event is proven to be in the file, and x-tributary-doubts why not (a JSON list). The header x-tributary-warnings has warnings about the filters.',
      role: 'operator',
      id: stream,
      query: ExportQuery,
      media: Object.values(TYPES),
      async handle({ id, query, signal }) {
        const { format } = query;
        const { job, window, createFile } = await chosenOf(deps, id as StreamName, query);
        if (running >= MOST_AT_ONCE)
          throw new HttpError(429, `${MOST_AT_ONCE} exports are already running`, {
            next: 'wait until one ends',
            retryAfter: 60,
          });
        running += 1;
        const { body, done } = await createDownload(
          (target) =>
            exportStream(job, {
              window,
              file: createFile(target),
              scrub: (rows) => withoutForgotten(deps.state, job.source, STREAMS[job.stream], rows),
              signal,
              onProgress: refuseTooMany,
            })
              .catch((error: unknown) => {
                logFailure(deps.log, job, error);
                throw error;
              })
              .finally(() => {
                running -= 1;
              }),
          signal,
        );
        const name = [job.source, job.stream, isoDay(window.start), isoDay(window.end)].join('-');
        return new FileAnswer({
          type: TYPES[format],
          body,
          headers: {
            'content-disposition': `attachment; filename="${name}.${format}"`,
            ...(job.warnings.length > 0 && { 'x-tributary-warnings': asciiJson(job.warnings) }),
          },
          trailers: {
            'x-tributary-certified': async () => String((await done).certified),
            'x-tributary-doubts': async () =>
              asciiJson((await done).doubts.slice(0, MOST_DOUBTS).map(({ note }) => note)),
          },
        });
      },
    }),
  ];
}

async function chosenOf({ state, streams, narrow }: Deps, name: StreamName, query: z.infer<typeof ExportQuery>) {
  const { source, filter, keepFormulas } = query;
  const [one, ...others] = chooseStreams(streams, { source, streams: [name] });
  if (!one) throw new Error('chooseStreams returns a stream, or throws');
  if (others.length > 0)
    throw new HttpError(409, `several sources have ${name}`, {
      next: `choose one with source: ${[one, ...others].map((each) => each.source).join(', ')}`,
    });
  const evolved = await readEvolved(state, name);
  return {
    job: narrow(one, filtersOf(filter)),
    window: chooseWindow(query),
    createFile: (target: ByteTarget) => createRowFile(query.format, name, target, { keepFormulas, evolved }),
  };
}

const filtersOf = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(texts.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]));

function refuseTooMany({ rows }: { rows: number }): void {
  if (rows <= MOST_EVENTS) return;
  throw new HttpError(409, `these are more than ${MOST_EVENTS} events`, {
    next: 'export shorter ranges, or use tributary export',
  });
}

/** The response may have begun and can no longer contain an error, so it is logged. A client that disconnected is no error. */
function logFailure(log: Log, { source, stream }: StreamJob, error: unknown): void {
  if (error instanceof Cancelled) return;
  if (error instanceof Fault) log.warn({ source, stream, reason: error.message }, 'an export was aborted');
  else log.error({ source, stream, err: error }, 'an export failed because of a bug');
}

/** A client that reads nothing for this long is disconnected. */
const PATIENCE_MS = 30_000;

/**
 * Pipes the file to the client, with backpressure. Settles with the first byte: a failure before it is a normal error response, and a
 * failure after it closes the connection, so that the client does not take half a file for a whole one.
 */
async function createDownload<T>(write: (target: ByteTarget) => Promise<T>, signal: AbortSignal) {
  const body = new PassThrough();
  // An error reaches the caller through `done`, or the client through the broken connection.
  body.on('error', () => {});
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const done = write({
    async write(bytes) {
      begin();
      if (!body.write(bytes)) await drained(body, signal);
    },
    finish: async () => void body.end(),
    abandon: async () => {},
  });
  done.catch((error: Error) => body.destroy(error));
  await Promise.race([begun, done]);
  return { body, done };
}

async function drained(body: PassThrough, signal: AbortSignal): Promise<void> {
  const late = setTimeout(() => body.destroy(new Error('the client stopped reading')), PATIENCE_MS);
  try {
    await once(body, 'drain', { signal });
  } catch (cause) {
    throw new Cancelled('the client disconnected, or stopped reading', { cause });
  } finally {
    clearTimeout(late);
  }
}
