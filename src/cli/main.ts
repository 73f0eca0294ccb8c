#!/usr/bin/env node
import { logOfEnvironment, wantsNoColour } from '../app/environment.ts';
import { EXIT } from './command.ts';
import { run } from './program.ts';
import { createTerminal } from './terminal/terminal.ts';

const terminal = createTerminal(wantsNoColour());
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The second time nobody wants to wait any more. Nothing is lost: what is not committed is read again.
    if (stop.signal.aborted) {
      if (terminal.isInteractive) terminal.err('\r\x1b[2K');
      process.exit(EXIT.interrupted);
    }
    terminal.err(`${terminal.isInteractive ? '\n' : ''}stopping; once more to stop at once\n`);
    stop.abort();
  });
}

process.exitCode = await run(process.argv.slice(2), { terminal, createLog: logOfEnvironment, signal: stop.signal });
