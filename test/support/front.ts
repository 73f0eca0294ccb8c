import {
  request as forward,
  type Server as HttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
} from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { Sandbox } from './odd-service/service.ts';

/** Forwards requests to a sandbox, and may change the headers of its answers. */
export const passTo =
  ({ port }: Pick<Sandbox, 'port'>, change: (headers: IncomingHttpHeaders) => void = () => {}): RequestListener =>
  (incoming, response) => {
    const { method, url: path, headers } = incoming;
    const onward = forward({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      change(answer.headers);
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  };

/** Listens on this port, or on a free one. */
export async function listening(server: Server, wanted = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Without waiting for open connections. */
export async function closed(server: HttpServer): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
