import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { dataDirectory, type Home } from './home.ts';
import { freePort } from './server.ts';

/** How our connections reach the server: by the socket in its folder, or by a port where there is no way to name that. */
export interface Way {
  /** The folder of the socket. */
  socket: string | undefined;
  tcp: { port: number } | undefined;
  close(): Promise<void>;
}

/** The operating system takes no longer path of a socket, its last byte included: 104 on macOS, 108 on Linux. */
const LONGEST = 103;

/** A state folder may lie deep. Linux has a short name for every open folder, which is good in this process. */
export async function wayTo(home: Home): Promise<Way> {
  const data = dataDirectory(home.dir);
  const nothing = async (): Promise<void> => {};
  if (Buffer.byteLength(join(data, '.s.PGSQL.5432')) <= LONGEST)
    return { socket: data, tcp: undefined, close: nothing };
  if (process.platform !== 'linux') return { socket: undefined, tcp: { port: await freePort() }, close: nothing };
  const folder = await open(dataDirectory(home.path));
  return { socket: `/proc/self/fd/${folder.fd}`, tcp: undefined, close: () => folder.close() };
}
