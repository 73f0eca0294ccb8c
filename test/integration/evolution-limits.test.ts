import { expect, it } from 'vitest';
import { ConfigError, StopStream } from '../../src/model/errors.ts';
import { evolvingFile, schema } from '../support/evolving.ts';
import { recordOf } from '../support/feed.ts';

/** Limits of evolution: policies, the maximum of columns, and views in the way. */

const evolving = evolvingFile();

it('keeps unknown fields in _extra under that policy', async () => {
  const { feed, column, typesOf } = evolving();
  const { send, source } = await feed('clicks', 'extra');
  const { schemaChanges } = await send([recordOf('a', { pExtra: 1, click: { pInner: [2] } })]);
  expect(schemaChanges).toEqual([]);
  expect(await typesOf('clicks', '^(click_)?p_')).toEqual({});
  expect(await column('clicks', source, '_extra')).toEqual(['{"click": {"pInner": [2]}, "pExtra": 1}']);
});

it('stops a frozen stream with the names of the fields, and writes nothing', async () => {
  const { feed, column, typesOf, history } = evolving();
  await (await feed('clicks')).send([recordOf('a', { fKnown: 1 })]);
  const { send, source } = await feed('clicks', 'freeze');
  await send([recordOf('known', { fKnown: 2 })]);
  const refused = send([recordOf('new', { fNew: 'x', fKnown: 'wider' })]);
  await expect(refused).rejects.toThrow(StopStream);
  await expect(refused).rejects.toThrow('fKnown (text, was integer), fNew (text)');
  await expect(refused).rejects.toMatchObject({ next: expect.stringContaining('unknownFields') });
  expect(await column('clicks', source, 'f_known')).toEqual(['2']);
  expect(await typesOf('clicks', '^f_')).toEqual({ f_known: 'bigint' });
  expect(await history('^fNew')).toEqual([]);
});

it('names the view that prevents widening a column, and the remedy; under policy extra it continues', async () => {
  const { place, feed, column } = evolving();
  const { send, source } = await feed('leads');
  await send([recordOf('a', { vScore: 1 })]);
  await place.db.query({ text: `create view public."my report" as select v_score from ${schema}.leads` });
  const stopped = send([recordOf('b', { vScore: 'high' })]);
  await expect(stopped).rejects.toThrow(ConfigError);
  await expect(stopped).rejects.toThrow(/column v_score of attribution\.leads .* view "my report" uses it/);
  await expect(stopped).rejects.toMatchObject({ next: expect.stringMatching(/drop view "my report".*unknownFields/) });
  expect(await column('leads', source, 'v_score')).toEqual(['1']);

  const other = await feed('leads', 'extra');
  await other.send([recordOf('b', { vScore: 'high' })]);
  expect(await column('leads', other.source, '_extra')).toEqual(['{"vScore": "high"}']);

  await place.db.query({ text: 'drop view public."my report"' });
  await send([recordOf('b', { vScore: 'high' })]);
  expect(await column('leads', source, 'v_score')).toEqual(['1', 'high']);
});
