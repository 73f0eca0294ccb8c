import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { Fault } from '../../src/model/errors.ts';
import { silentLog } from './silent-log.ts';

/**
 * Opens the embedded Postgres in a separate process: `embedded-child.ts DIR [attach]`. Prints one line of JSON, then waits for
 * the end of its stdin. Ctrl-C does not end it: the test checks that it does not end the server either.
 */
process.on('SIGINT', () => {});
const [, , dir = '', mode] = process.argv;
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
try {
  const server = await openEmbedded({ dir, log: silentLog, attach: mode === 'attach' });
  say({ url: server.url, uid: process.getuid?.() });
  for await (const _ of process.stdin);
  await server.close();
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  say({ refused: error.describe() });
}
