import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { PostgresConnection } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { UNPROVEN } from '../../src/cursor/database/errors.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { createGuardedBackend } from '../../src/jobs/bull.ts';
import { ConfigError, type Fault } from '../../src/model/errors.ts';

/** A foreign in the place of a Postgres server: it answers each message of ours with the next of its own. */
type Script = ReadonlyArray<Buffer | ((heard: Buffer) => Buffer)>;

async function withStranger(script: Script, work: (port: number) => Promise<void>): Promise<string> {
  const heard: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let turn = 0;
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (chunk) => {
      if (turn > 0) heard.push(chunk);
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
  return Buffer.concat(heard).toString('latin1');
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
  (heard: Buffer): Buffer =>
    auth(11, `r=${/r=([^,]+)$/.exec(heard.toString('latin1'))?.[1]}more,s=${btoa('salt')},i=${rounds}`);

async function refusal(url: string): Promise<Fault> {
  const db = connect({ url });
  const error = await db.query({ text: 'SELECT 1' }).catch((fault: Fault) => fault);
  await db.close();
  expect(error).toBeInstanceOf(ConfigError);
  return error as Fault;
}

/** By another name than those of this machine, which it is all the same. */
const elsewhere = (port: number, query = ''): string => `postgresql://ann:sEcr3t@0.0.0.0:${port}/db${query}`;
const CLEAR = auth(3);
const MD5 = auth(5, 'salt');

describe('a foreign in the place of the server', () => {
  const asks: ReadonlyArray<[string, Buffer]> = [
    ['asks for the password in the clear', CLEAR],
    ['asks for an MD5 of it', MD5],
    ['asks for nothing', OK],
  ];
  const onlyScram = (port: number): string => `postgresql://ann:sEcr3t@127.0.0.1:${port}/db?require_auth=scram-sha-256`;

  it.each(asks)('%s, where only SCRAM is allowed, and gets neither it nor a question', async (_, answer) => {
    const heard = await withStranger([answer], async (port) => {
      expect((await refusal(onlyScram(port))).message).toContain(UNPROVEN);
    });
    expect(heard).toBe('');
  });

  // The queue has clients of its own, for its questions and for LISTEN.
  it.each(asks)('%s, and gets it from no client of the queue either', async (_, answer) => {
    const heard = await withStranger([answer], async (port) => {
      const { connection } = createGuardedBackend('sync', {
        connection: { connectionString: onlyScram(port) },
      }) as unknown as { connection: PostgresConnection };
      await expect(connection.pool.connect()).rejects.toThrow(UNPROVEN);
      await expect(connection.getListenClient()).rejects.toThrow(UNPROVEN);
      await connection.close();
    });
    expect(heard).toBe('');
  });

  it.each<[string, Script, RegExp]>([
    [
      'the password in the clear',
      [CLEAR, OK],
      /as clear text[\s\S]*kept: the password was not sent[\s\S]*require_auth=password/,
    ],
    ['an MD5 of it', [MD5, OK], /as an MD5 hash[\s\S]*require_auth=md5/],
    ['a proof of few rounds', [SCRAM, proceed(1), OK], /did not prove/],
  ])('gets not %s by default, on another machine and without TLS', async (_, script, says) => {
    const heard = await withStranger(script, async (port) => {
      expect((await refusal(elsewhere(port))).describe()).toMatch(says);
    });
    expect(heard).not.toMatch(/sEcr3t|md5|p=/);
  });

  it.each<[string, Script]>([
    ['skips its own proof', [SCRAM, proceed(4096), OK]],
    ['gives a wrong one', [SCRAM, proceed(4096), Buffer.concat([auth(12, `v=${btoa('no')}`), OK])]],
    ['takes the first word for all', [SCRAM, OK]],
  ])('%s, and gets no question, also on this machine', async (_, script) => {
    const heard = await withStranger(script, async (port) => {
      const { message: said } = await refusal(`postgresql://ann:sEcr3t@127.0.0.1:${port}/db`);
      expect(said).toMatch(/could not authenticate itself/);
    });
    expect(heard).not.toContain('SELECT');
  });
});

it.each<[string, Buffer, string, RegExp]>([
  ['in the clear where the URL allows it', CLEAR, '?require_auth=password', /sEcr3t/],
  ['as MD5 where the URL allows it', MD5, '?require_auth=md5,scram-sha-256', /md5[0-9a-f]{32}/],
])('the password is sent %s', async (_, ask, query, sent) => {
  const heard = await withStranger([ask, OK], async (port) => {
    const db = connect({ url: elsewhere(port, query) });
    const session = await db.session();
    await session.close();
    await db.close();
  });
  expect(heard).toMatch(sent);
});

it('a misspelt require_auth is a fault of the URL', () => {
  expect(() => connect({ url: elsewhere(1, '?require_auth=scram') })).toThrow(/unknown require_auth/);
});
