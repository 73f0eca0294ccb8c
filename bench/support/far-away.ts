import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

/** The way to a service that is far away: what is sent arrives later, and not always by the same time. Order is kept, as on any connection. */
export interface FarAway {
  baseUrl: string;
  close(): Promise<void>;
}

export interface Distance {
  /** There and back. */
  latencyMs: number;
  /** What each way may take on top, at most. */
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
      // A client that was killed breaks its connections: nothing to do about it.
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
  let arrivesAt = 0;
  const later = (deliver: () => void): void => {
    arrivesAt = Math.max(arrivesAt, performance.now() + latencyMs / 2 + Math.random() * jitterMs);
    setTimeout(deliver, arrivesAt - performance.now());
  };
  from.on('data', (chunk) => later(() => to.writable && to.write(chunk)));
  from.on('end', () => later(() => to.end()));
}
