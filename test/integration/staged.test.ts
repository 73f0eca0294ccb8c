import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { sql } from '../../src/cursor/database/sql.ts';
import type { Kind, Value } from '../../src/model/columns.ts';
import { EARLIEST, LATEST } from '../../src/model/instant.ts';
import { asParameter, asTable } from '../../src/sinks/postgres/staged.ts';
import { stateDatabase } from '../support/postgres.ts';

/** Few rows are sent as JSON, many by binary COPY. The server must hold the same either way. */

let home: Awaited<ReturnType<typeof stateDatabase>>;
let db: Database;
beforeAll(async () => {
  home = await stateDatabase();
  db = connect({ url: home.url });
});
afterAll(async () => {
  await db.close();
  await home.drop();
});

const VALUES: Readonly<Record<Kind, readonly Value[]>> = {
  text: [
    '',
    ' ',
    'null',
    '"',
    '\\',
    '\\u0041',
    'a\tb\nc\r',
    '\u0001\u007f\u2028',
    '🙂 ä 漢',
    '{"a":1}',
    "'; --",
    'x'.repeat(70_000),
  ],
  integer: [0, -1, Number.MAX_SAFE_INTEGER, 2n ** 63n - 1n, -(2n ** 63n)],
  number: [0, -0, 0.1, 1e21, 1.7976931348623157e308, 5e-324, -1.5e-7, 123_456_789.123, 2n ** 70n],
  boolean: [true, false],
  timestamp: [0, -1, EARLIEST, LATEST, 1_731_000_000_000.123, 1_731_000_000_000.999, -0.001],
  json: [
    '{}',
    '[]',
    '"text"',
    '0',
    'true',
    '{"b":1,"a":{"n":12345678901234567890.12345678901234567890,"s":"\\"\\\\🙂\\n"}}',
    '{"a":null}',
    '{"k":1,"k":2}',
  ],
};

it.each(Object.keys(VALUES) as Kind[])('%s', async (kind) => {
  const columns = [
    { name: 'n', kind: 'integer' as const },
    { name: 'odd "name" \\ ä', kind },
  ];
  const rows: Value[][] = [...VALUES[kind], null].map((value, i) => [i, value]);
  await db.transaction(async (tx) => {
    const few = asParameter({ name: 'few', columns }, rows);
    const many = await asTable(tx, { name: 'many', columns }, rows);
    expect([few('few').values?.length, many('many').values?.length]).toEqual([1, 0]);
    // As text: equal numbers may be written with more or fewer zeros.
    const met = await tx.query<{ few: string; many: string }>(
      sql`select few.n, few::text as few, many::text as many from ${few('few')} full join ${many('many')} using (n) order by n`,
    );
    expect(met).toHaveLength(rows.length);
    expect(met.map((row) => row.few)).toEqual(met.map((row) => row.many));
  });
});
