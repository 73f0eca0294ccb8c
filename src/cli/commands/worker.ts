import { environment } from '../../app/index.ts';
import { type Config, DEFAULT_CONFIG } from '../../config/index.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import { Fault } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import type { StreamReport } from '../../sync/run.ts';
import { type Context, command, EXIT, type ExitCode, type Options, parseWhole } from '../command.ts';
import { configFor } from '../config.ts';
import { counted, figure, minute } from '../terminal.ts';

const WORKER_EXAMPLES = `Examples:
  tributary worker                        keeps every stream of the config fresh
  tributary worker --json >> runs.ndjson  a line of JSON for each run

Run any number of workers, on any number of machines: workers that share a state
database share the work. On Ctrl-C or SIGTERM the worker commits what it has
read and exits; nothing is lost.`;

export const registerWorker = command('worker', {
  does: 'keep the tables up to date, on the schedules of the config',
  options: ['config', 'json'],
  more: WORKER_EXAMPLES,
  run: work,
});

/** A run that hangs must not keep the process alive: its lease expires, and another run reads its window again. */
const EXIT_WITHIN_MS = 24_000;

async function work(context: Context, options: Options): Promise<ExitCode> {
  const { log, signal } = context;
  const config = await loadConfig(context, options);
  exitInTime(signal);
  // Imported here: the help loads every command file, and should not wait for the queue's packages.
  const { runWorkerApp } = await import('../../app/worker.ts');
  await runWorkerApp({ config, log, signal, ...reporters(context, options) });
  return EXIT.done;
}

/** Prints warnings about the config and about connections without TLS: nobody runs `doctor` before every start. */
async function loadConfig({ terminal }: Context, options: Options): Promise<Config> {
  const config = configFor({ terminal }, options);
  const { clearFindings } = await import('../../app/doctor.ts');
  for (const { subject, says, fix } of clearFindings(config)) terminal.err(`note: ${subject} ${says}: ${fix}\n`);
  return config;
}

export function exitInTime(signal: AbortSignal): void {
  const leave = (): void => void setTimeout(() => process.exit(EXIT.done), EXIT_WITHIN_MS).unref();
  // A signal that arrived while the program was loading raises no further event.
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
}

const reporters = ({ terminal, document }: Context, { json }: Options) => ({
  onReady: ({ streams, queue, state }: { streams: number; queue: string; state: string }) =>
    terminal.err(`working on ${counted(streams, 'stream')} · queue: ${queue} · state: ${state}\n`),
  onRun: (report: StreamReport) => terminal.out(json ? document(runJson(report), { isLine: true }) : runLine(report)),
});

function runLine({ source, stream, state, tally, cursor, fault }: StreamReport): string {
  const through = cursor?.completeThrough;
  const parts = [
    `${toIso(Date.now()).slice(0, 19)}Z ${source}/${stream} ${state}`,
    `${figure(tally.new)} new`,
    tally.changed > 0 && `${figure(tally.changed)} changed`,
    counted(tally.requests, 'request'),
    through !== undefined && `complete through ${minute(toIso(through))}`,
    fault && fault.message !== state && fault.message,
  ];
  return parts.filter(Boolean).join(' · ');
}

const runJson = ({ source, stream, runId, state, tally, cursor, fault }: StreamReport) => ({
  source,
  stream,
  runId,
  state,
  ...tally,
  completeThrough: isoOrNull(cursor?.completeThrough),
  message: fault?.message ?? null,
});

const START_EXAMPLES = `Examples:
  tributary start                      then open the link that it prints
  tributary start --port 8080
  tributary start --json >> runs.ndjson

Runs the worker and the control room: a page, /api, /metrics, /healthz, /readyz
and /queues. It listens on this machine only, unless http.host and http.token
are set. Without http.token, a token is generated at the first start, in
.tributary/http-token. SIGHUP reloads http.token and http.tokens. On Ctrl-C or
SIGTERM the worker commits what it has read and exits; nothing is lost.

Other commands can run at the same time: status, query, backfill, verify,
export, forget. On the embedded Postgres, sync, worker and a second start are
refused with exit code 4.`;

const PORT = parseWhole('port', 65_535, { meant: ' (any free port)' });

export const registerStart = command('start', {
  does: 'run the worker and the control room: page, API, health, metrics',
  options: [
    ['--port <N>', 'port of the control room (default: http.port of the config, 7070)', PORT],
    ...(['config', 'json'] as const),
  ],
  more: START_EXAMPLES,
  run: start,
});

async function start(context: Context, options: Options & { port?: number }): Promise<ExitCode> {
  const { terminal, log, signal } = context;
  const read = await loadConfig(context, options);
  const config = { ...read, http: { ...read.http, port: options.port ?? read.http.port } };
  exitInTime(signal);
  // Imported here: the web server and the queue take longer to load than all other commands together.
  const { runStartApp } = await import('../../app/start.ts');
  await runStartApp({
    config,
    log,
    signal,
    onListening(url, room) {
      // Logs are kept and read by many, so the sign-in link is printed only on a terminal.
      const link = process.stderr.isTTY ? room.link : undefined;
      terminal.err(
        `control room: ${link ?? url}${room.link && !link ? ' (sign in with the token in .tributary/http-token)' : ''}\n`,
      );
      onHangUp(signal, async () => {
        try {
          await room.reload(environment.config(options.config ?? DEFAULT_CONFIG).config.http);
          log.warn({}, 'the tokens of the control room were reloaded');
        } catch (error) {
          // Recovery: the previous tokens stay in use; the log says why.
          if (!(error instanceof Fault)) throw error;
          log.error({ reason: error.describe() }, 'the config cannot be read; nothing was changed');
        }
      });
    },
    ...reporters(context, options),
  });
  return EXIT.done;
}

/** Handles SIGHUP until the signal is aborted. On a terminal SIGHUP means that the window was closed, and ends the process. */
function onHangUp(signal: AbortSignal, reload: () => Promise<void>): void {
  if (process.stdin.isTTY) return;
  process.on('SIGHUP', reload);
  signal.addEventListener('abort', () => process.off('SIGHUP', reload), { once: true });
}
