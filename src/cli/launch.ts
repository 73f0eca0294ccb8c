import { setFlagsFromString } from 'node:v8';
import { logOfEnvironment, wantsNoColour } from '../app/environment.ts';
import { EXIT } from './command.ts';
import { run } from './program.ts';
import { createTerminal } from './terminal.ts';

/** By then, a command has loaded its modules. */
const LONG_MS = 1000;

export async function launch(): Promise<void> {
  // A batch of rows lives just long enough to be promoted to the old heap, which V8 lets double before it collects garbage there.
  // So the memory of a first sync would grow with its length. Growing by 70 % keeps it flat and costs little CPU; by a third, a quarter more.
  // Only for commands that last: after a flag is set, V8 recompiles what was compiled without it, such as Node's own modules.
  setTimeout(() => setFlagsFromString('--heap-growing-percent=70'), LONG_MS).unref();

  const terminal = createTerminal(wantsNoColour());
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // The second signal ends the process at once. Nothing is lost: what is not committed is read again.
      if (stop.signal.aborted) {
        terminal.live();
        process.exit(EXIT.interrupted);
      }
      terminal.err(`${terminal.isInteractive ? '\n' : ''}stopping; press Ctrl-C again to stop immediately\n`);
      stop.abort();
    });
  }

  process.exitCode = await run(process.argv.slice(2), {
    terminal,
    signal: stop.signal,
    createLog: () => logOfEnvironment(terminal.err),
  });
}
