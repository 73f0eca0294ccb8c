import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

/** A proxy that adds latency with jitter, in order, as on any connection. */
export interface FarAway {
  baseUrl: string;
  close(): Promise<void>;
}

export interface Distance {
  /** The round trip. */
  latencyMs: number;
  /** The maximal delay added to each direction. */
  jitterMs: number;
}

export async function farAway(target: string, distance: Distance): Promise<FarAway> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = createConnection({ host: hostname, port: Number(port), noDelay: true });
    for (const socket of [near, far]) {
      open.add(socket);
      socket.setNoDelay();
      // A killed client resets its connections, which is expected.
      socket.on('error', () => {}).on('close', () => open.delete(socket));
    }
    carry(near, far, distance);
    carry(far, near, distance);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function carry(from: Socket, to: Socket, { latencyMs, jitterMs }: Distance): void {
  const onTheWay: { arrivesAt: number; deliver: () => void }[] = [];
  let delayMs = 0;
  // One at a time: timers of different lengths may fire out of order, but bytes must not.
  const next = (): void => {
    const first = onTheWay[0];
    if (!first) return;
    setTimeout(() => {
      onTheWay.shift();
      first.deliver();
      next();
    }, first.arrivesAt - performance.now());
  };
  const later = (deliver: () => void): void => {
    // Data that follows immediately belongs to the same message, with the same delay.
    if (onTheWay.length === 0) delayMs = latencyMs / 2 + Math.random() * jitterMs;
    onTheWay.push({ arrivesAt: performance.now() + delayMs, deliver });
    if (onTheWay.length === 1) next();
  };
  from.on('data', (chunk) => later(() => to.writable && to.write(chunk)));
  from.on('end', () => later(() => to.end()));
}
