/** What of a connection is looked at: how much has passed, who is at the other end, and the way to end it. */
export interface Watched {
  /** Of the server's process that answers here. */
  pid: number;
  bytesPassed(): number;
  cut(reason: Error): void;
}

/** What the server says of its process: at work on what we asked, waiting for us, or not to be found. */
export type Standing = 'at work' | 'waiting for us' | 'unknown';

/** A server is asked about at this interval while it says nothing. */
export const SILENCE_MS = 60_000;

/** Behind a pooler a process cannot be found: then so many silences in a row say that the line is dead. */
const MOST_UNKNOWN = 5;

/**
 * Waits for an answer of a server, however long the work takes there, but not for one that will never come: a line that a firewall
 * or a dead machine has swallowed says nothing for ever. So when nothing has passed for a while, the server is asked on another
 * connection what it is doing. A limit on the time of a query would end those that are only long.
 */
export async function unlessSilent<T>(
  line: Watched,
  silenceMs: number,
  lookAt: (pid: number) => Promise<Standing>,
  work: Promise<T>,
): Promise<T> {
  let seen = line.bytesPassed();
  let unknown = 0;
  const look = async (): Promise<void> => {
    const passed = line.bytesPassed();
    if (passed !== seen) {
      [seen, unknown] = [passed, 0];
      return;
    }
    // Recovery: a server that cannot be asked either is not there.
    const standing = await lookAt(line.pid).catch(() => 'waiting for us' as const);
    unknown = standing === 'unknown' ? unknown + 1 : 0;
    const isDead = standing === 'waiting for us' || unknown >= MOST_UNKNOWN;
    if (isDead && line.bytesPassed() === seen) line.cut(silent(silenceMs));
  };
  const timer = setInterval(() => void look(), silenceMs);
  timer.unref();
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

/** By the code of a lost connection, since that is what it is. */
const silent = (ms: number): Error =>
  Object.assign(new Error(`nothing came for ${ms / 1000} s and the server does not know of our question`), {
    code: '08006',
  });
