#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { logOfEnvironment, wantsNoColour } from '../app/environment.ts';
import { EXIT } from './command.ts';
import { run } from './program.ts';
import { createTerminal } from './terminal.ts';

// A batch of rows lives just long enough to be promoted to the old heap, which V8 lets double before it looks for what is dead there.
// Then the memory of a first sync grows with its length. Growing by a third costs a little work and keeps it flat.
setFlagsFromString('--heap-growing-percent=33');

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
