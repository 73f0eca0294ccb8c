import { createConnection, createServer, type Socket } from 'node:net';
import { freePort } from './free-port.ts';

/** Faults of a connection. Bytes are counted in both directions. */
export type LineFault =
  /** Delays all data. */
  | { kind: 'latency'; ms: number }
  /** Resets connections, new ones at their first byte. */
  | { kind: 'reset' }
  /** Ends every connection after so many more bytes. */
  | { kind: 'cut'; bytes: number }
  /** Sends answers a few bytes at a time. */
  | { kind: 'drip'; bytes: number; everyMs: number }
  /** Accepts connections and sends nothing. */
  | { kind: 'half-open' }
  /** Refuses connections and closes open ones. */
  | { kind: 'refuse' }
  /** Every connection stalls after so many more bytes. */
  | { kind: 'black hole'; bytes: number }
  /** The next COMMIT of Postgres, after some others, is lost, or only its answer is. Then the fault ends. */
  | { kind: 'commit'; lost: 'question' | 'answer'; letThrough: number };

const COMMIT = Buffer.from('COMMIT\0');

/** Each fault by its name in tests and docs/troubleshooting.md, so that it strikes in the middle of a run of a few thousand bytes. */
export const LINE_FAULTS: Readonly<Record<string, LineFault>> = {
  latency: { kind: 'latency', ms: 15 },
  'a slow line': { kind: 'drip', bytes: 3000, everyMs: 1 },
  reset: { kind: 'reset' },
  'cut after some bytes': { kind: 'cut', bytes: 20_000 },
  'half-open': { kind: 'half-open' },
  refused: { kind: 'refuse' },
  'swallowed after some bytes': { kind: 'black hole', bytes: 20_000 },
};

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

interface Pair {
  client: Socket;
  upstream: Socket;
  /** Bytes until the fault strikes. */
  left: number;
  /** Data was lost, so later data is useless. */
  isLost: boolean;
  /** The next answer is withheld, and ends the connection. */
  isMuted: boolean;
}

/** A proxy for any TCP server that can break its connections in every known way. */
export async function startFaultProxy(target: string) {
  const { hostname, port, protocol } = new URL(target);
  const targetPort = Number(port || (protocol === 'https:' ? 443 : 80));
  const pairs = new Set<Pair>();
  let fault: LineFault | undefined;
  let waiting: { fault: LineFault; atBytes: number } | undefined;
  let passed = 0;
  let attempts = 0;

  const end = (pair: Pair, how: 'destroy' | 'resetAndDestroy' = 'destroy'): void => {
    pairs.delete(pair);
    for (const socket of [pair.client, pair.upstream]) socket.destroyed || socket[how]();
  };
  /** Silent connections stay open to the server: it does not learn of a client lost in the network. */
  const isSilent = (pair: Pair): boolean => {
    pair.isLost ||= fault?.kind === 'half-open' || (fault?.kind === 'black hole' && pair.left <= 0);
    return pair.isLost;
  };

  const begin = async (next: LineFault): Promise<void> => {
    fault = next;
    attempts = 0;
    for (const pair of [...pairs]) {
      if (next.kind === 'cut' || next.kind === 'black hole') pair.left = next.bytes;
      if (next.kind === 'refuse') end(pair);
      if (next.kind === 'reset') end(pair, 'resetAndDestroy');
    }
    if (next.kind === 'refuse') await new Promise((resolve) => server.close(resolve));
  };

  /** Counts a chunk, and starts the fault once its bytes have passed. */
  const count = (pair: Pair, bytes: number): void => {
    passed += bytes;
    pair.left -= bytes;
    if (!waiting || passed < waiting.atBytes) return;
    const { fault: next } = waiting;
    waiting = undefined;
    void begin(next);
  };

  /** Whether the chunk is lost with the COMMIT in it. */
  const losesCommit = (pair: Pair, chunk: Buffer): boolean => {
    if (fault?.kind !== 'commit' || !chunk.includes(COMMIT) || fault.letThrough-- > 0) return false;
    pair.isMuted = fault.lost === 'answer';
    fault = undefined;
    return !pair.isMuted;
  };
  const carry = (pair: Pair, from: Socket, to: Socket): void => {
    /** Chunks in sequence, however late. */
    let line = Promise.resolve();
    const send = (piece: Buffer): void => {
      if (!isSilent(pair) && to.writable) to.write(piece);
    };
    const pass = async (chunk: Buffer): Promise<void> => {
      if (fault?.kind === 'latency') await pause(fault.ms);
      for (let at = 0; at < chunk.length; ) {
        const isDripping = fault?.kind === 'drip' && from === pair.upstream;
        const piece = isDripping && fault?.kind === 'drip' ? chunk.subarray(at, at + fault.bytes) : chunk.subarray(at);
        if (isDripping && fault?.kind === 'drip') await pause(fault.everyMs);
        send(piece);
        at += piece.length;
      }
    };
    from.on('data', (chunk: Buffer) => {
      count(pair, chunk.length);
      if (fault?.kind === 'reset') return end(pair, 'resetAndDestroy');
      if (fault?.kind === 'cut' && pair.left <= 0) return end(pair);
      if (from === pair.client ? losesCommit(pair, chunk) : pair.isMuted) return end(pair);
      line = line.then(() => pass(chunk));
    });
    from
      .on('error', () => {})
      .on('close', () => {
        if (!isSilent(pair)) void line.then(() => end(pair));
      });
  };

  const server = createServer({ allowHalfOpen: true }, (client) => {
    attempts++;
    const left = fault?.kind === 'cut' || fault?.kind === 'black hole' ? fault.bytes : Number.POSITIVE_INFINITY;
    const upstream = createConnection({ host: hostname, port: targetPort, allowHalfOpen: true });
    const pair: Pair = { client, upstream, left, isLost: false, isMuted: false };
    pairs.add(pair);
    carry(pair, client, upstream);
    carry(pair, upstream, client);
  });
  const listen = (at: number): Promise<void> => new Promise((resolve) => server.listen(at, '127.0.0.1', resolve));
  const ownPort = await freePort();
  await listen(ownPort);
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(ownPort);

  return {
    /** The target's URL through this proxy. */
    url: url.href.replace(/\/$/, ''),
    /** Starts the fault now, or after so many more bytes. */
    async fail(next: LineFault, afterBytes = 0) {
      if (afterBytes > 0) waiting = { fault: next, atBytes: passed + afterBytes };
      else await begin(next);
    },
    /** Ends the fault and resets connections that it affected, as a recovered network does. */
    async heal() {
      const isAway = fault?.kind === 'refuse';
      for (const pair of [...pairs]) if (isSilent(pair)) end(pair, 'resetAndDestroy');
      [fault, waiting] = [undefined, undefined];
      if (isAway) await listen(ownPort);
    },
    /** Whether the fault has started. */
    hasFailed: () => fault !== undefined,
    /** Connections opened since the fault started. */
    attempts: () => attempts,
    /** Bytes so far, in both directions. */
    bytes: () => passed,
    async close() {
      for (const pair of [...pairs]) end(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
