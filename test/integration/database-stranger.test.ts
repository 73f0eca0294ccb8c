import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { PostgresConnection } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { UNPROVEN } from '../../src/cursor/database/errors.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { createGuardedBackend } from '../../src/jobs/bull.ts';
import { ConfigError, type Fault } from '../../src/model/errors.ts';

/** An impostor in place of the Postgres server: it answers each client message with the next of its own. */
type Script = ReadonlyArray<Buffer | ((received: Buffer) => Buffer)>;

async function withImpostor(script: Script, work: (port: number) => Promise<void>): Promise<string> {
  const received: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let turn = 0;
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (chunk) => {
      if (turn > 0) received.push(chunk);
      const say = script[turn++];
      if (say) socket.write(typeof say === 'function' ? say(chunk) : say);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await work((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
  return Buffer.concat(received).toString('latin1');
}

const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.from(`${type}....`);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
};
const auth = (code: number, rest: Buffer | string = ''): Buffer =>
  message('R', Buffer.concat([Buffer.from([0, 0, 0, code]), Buffer.from(rest)]));
const READY = message('Z', Buffer.from('I'));
const OK = Buffer.concat([auth(0), READY]);
const SCRAM = auth(10, 'SCRAM-SHA-256\0\0');
const proceed =
  (rounds: number) =>
  (received: Buffer): Buffer =>
    auth(11, `r=${/r=([^,]+)$/.exec(received.toString('latin1'))?.[1]}more,s=${btoa('salt')},i=${rounds}`);

async function refusal(url: string): Promise<Fault> {
  const db = connect({ url });
  const error = await db.query({ text: 'SELECT 1' }).catch((fault: Fault) => fault);
  await db.close();
  expect(error).toBeInstanceOf(ConfigError);
  return error as Fault;
}

/** This machine under a name that the client takes for another machine. */
const elsewhere = (port: number, query = ''): string => `postgresql://ann:sEcr3t@0.0.0.0:${port}/db${query}`;
const CLEAR = auth(3);
const MD5 = auth(5, 'salt');

describe('an impostor in place of the server', () => {
  const asks: ReadonlyArray<[string, Buffer]> = [
    ['asks for the clear-text password', CLEAR],
    ['asks for an MD5 of it', MD5],
    ['asks for nothing', OK],
  ];
  const scramOnly = (port: number): string => `postgresql://ann:sEcr3t@127.0.0.1:${port}/db?require_auth=scram-sha-256`;

  it.each(asks)('%s, and gets neither it nor a query if only SCRAM is allowed', async (_, answer) => {
    const received = await withImpostor([answer], async (port) => {
      expect((await refusal(scramOnly(port))).message).toContain(UNPROVEN);
    });
    expect(received).toBe('');
  });

  // The queue has its own clients, for queries and for LISTEN.
  it.each(asks)('%s, and gets it from no client of the queue', async (_, answer) => {
    const received = await withImpostor([answer], async (port) => {
      const { connection } = createGuardedBackend('sync', {
        connection: { connectionString: scramOnly(port) },
      }) as unknown as { connection: PostgresConnection };
      await expect(connection.pool.connect()).rejects.toThrow(UNPROVEN);
      await expect(connection.getListenClient()).rejects.toThrow(UNPROVEN);
      await connection.close();
    });
    expect(received).toBe('');
  });

  it.each<[string, Script, RegExp]>([
    [
      'the clear-text password',
      [CLEAR, OK],
      /as clear text[\s\S]*kept: the password was not sent[\s\S]*require_auth=password/,
    ],
    ['an MD5 of it', [MD5, OK], /as an MD5 hash[\s\S]*require_auth=md5/],
    ['a proof with few iterations', [SCRAM, proceed(1), OK], /did not prove/],
  ])('does not get %s by default, on another machine and without TLS', async (_, script, says) => {
    const received = await withImpostor(script, async (port) => {
      expect((await refusal(elsewhere(port))).describe()).toMatch(says);
    });
    expect(received).not.toMatch(/sEcr3t|md5|p=/);
  });

  it.each<[string, Script]>([
    ['skips its own proof', [SCRAM, proceed(4096), OK]],
    ['gives a wrong one', [SCRAM, proceed(4096), Buffer.concat([auth(12, `v=${btoa('no')}`), OK])]],
    ['skips the last step of SCRAM', [SCRAM, OK]],
  ])('%s, and gets no query, even on this machine', async (_, script) => {
    const received = await withImpostor(script, async (port) => {
      const { message: said } = await refusal(`postgresql://ann:sEcr3t@127.0.0.1:${port}/db`);
      expect(said).toMatch(/could not authenticate itself/);
    });
    expect(received).not.toContain('SELECT');
  });
});

it.each<[string, Buffer, string, RegExp]>([
  ['in clear text if the URL allows it', CLEAR, '?require_auth=password', /sEcr3t/],
  ['as MD5 if the URL allows it', MD5, '?require_auth=md5,scram-sha-256', /md5[0-9a-f]{32}/],
])('the password is sent %s', async (_, ask, query, sent) => {
  const received = await withImpostor([ask, OK], async (port) => {
    const db = connect({ url: elsewhere(port, query) });
    const session = await db.session();
    await session.close();
    await db.close();
  });
  expect(received).toMatch(sent);
});

it('a misspelled require_auth is a fault of the URL', () => {
  expect(() => connect({ url: elsewhere(1, '?require_auth=scram') })).toThrow(/unknown require_auth/);
});
