import { expect, it } from 'vitest';
import { createS3Store } from '../../src/sinks/files/store/s3-store.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { startS3 } from '../support/s3-server.ts';
import { sinkScenes, synced } from '../support/sink-scene.ts';

/** A bucket keeps versions, and an earlier one is restored. */

const scenes = sinkScenes();
const server = await forThisFile(startS3());
Object.assign(process.env, server.environment);

it('the daily listing finds an object of an earlier version, and its missing rows are read again', async () => {
  const scene = await synced(scenes, `sink: { type: parquet, path: "s3://${server.bucket}/SOURCE" }`, {
    env: server.environment,
  });
  const store = createS3Store({ url: `s3://${server.bucket}/${scene.source}`, pathStyle: true });
  const day = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10);
  const path = `clicks/date=${day}/${scene.source}.parquet`;
  const read = async (): Promise<{ bytes: Uint8Array; identity: string }> => {
    const file = await store.open(path);
    if (!file) throw new Error(`no ${path}`);
    const bytes = await file.read(0, file.size);
    await file.close();
    return { bytes, identity: file.identity };
  };
  const rows = async (): Promise<number> => {
    const [found] = await scenes.state.query<{ rows: number }>({
      text: `select sum(f.rows)::int as rows from tributary.lake_files f join tributary.lake_tracks t on t.id = f.track where t.source = $1`,
      values: [scene.source],
    });
    return found?.rows ?? 0;
  };
  const earlier = await read();
  const noon = Date.parse(`${day}T12:00:00Z`);
  const late = scenes.sandbox.service.arrive('clicks', 20, { from: noon, to: noon + 3_600_000 }).length;
  expect(await scene.tributary('backfill', '--from', day, '--to', '2d', '--force')).toMatchObject({ code: 0 });
  const all = await rows();
  const newer = await read();
  expect(newer.bytes).not.toEqual(earlier.bytes);

  const put = await store.stage(path);
  await put.write(earlier.bytes, 0);
  await (await put.finish()).close();
  await put.publish(newer.identity);
  await put.discard();
  await scenes.state.query({ text: `update tributary.lake_tracks set listed_at = now() - interval '25 hours'` });
  const { code, text } = await scene.tributary('sync');
  expect([code, text]).toEqual([0, expect.stringMatching(/where .* were written.* is read again/)]);
  expect([late, await rows()]).toEqual([20, all]);
  expect(await scene.tributary('verify', '--from', '10d', '--to', 'now')).toMatchObject({ code: 0 });
  await store.close();
});
