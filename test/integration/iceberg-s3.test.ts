import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { icebergS3Place, KEEP_NOTHING, namedBy } from '../support/iceberg-place.ts';
import { filesIn } from '../support/lake-readers.ts';
import { startS3 } from '../support/s3-server.ts';
import { createWriter, MINUTE, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';

const server = await forThisFile(startS3());
Object.assign(process.env, server.environment);

/** What a folder and a bucket share is tested in `iceberg-sink.test.ts` and `iceberg-tables.test.ts`. */
it('keeps tables in a bucket: commits, changes, joins, expires and forgets, and leaves no unreferenced object', async () => {
  const place = await icebergS3Place(server);
  try {
    const stream = STREAMS.sales;
    await place.createSink().prepare(stream);
    const writer = await createWriter(place, stream, 'one');
    const sale = (id: string, minute: number, amount: number) =>
      rowOf(stream, id, NOON + minute * MINUTE, {
        sale_amount: amount,
        customer_id: `c-${id}`,
        customer_email: 'x@example.com',
      });
    for (let i = 0; i < 4; i++) await writer.commit([sale(`e${i}`, i, i), sale('same', 0, i)]);
    expect((await rowsOf(place, stream, 'one')).get('same')?.sale_amount).toBe(3);
    const seen = await place.lookAt('sales');
    expect(seen.location).toMatch(new RegExp(`^s3://${server.bucket}/${place.prefix}/attribution/sales/metadata/`));

    const sink = place.createSink(KEEP_NOTHING);
    expect((await sink.maintain())['attribution.sales']).toMatchObject({ joined: 4, files: 1 });
    expect(await sink.erase({ source: 'one', kind: 'customer', id: 'c-e1' })).toMatchObject({ 'attribution.sales': 1 });
    const rows = await rowsOf(place, stream, 'one');
    expect(rows.size).toBe(5);
    expect(rows.get('e1')?.customer_id).toBeNull();
    const named = new Set<string>();
    for (const table of ['sales', 'links', 'customers'])
      for (const file of await namedBy(await place.lookAt(table))) named.add(file);
    expect((await filesIn(place.folder)).filter((file) => !named.has(join(place.folder, file)))).toEqual([]);
    expect(server.uploads()).toEqual([]);
  } finally {
    await place.close();
  }
});
