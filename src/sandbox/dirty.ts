import type { StreamName } from '../model/streams.ts';
import type { Json, JsonObject } from './types.ts';

/** One way a record can bite. `spoil` changes a sound record in place. */
interface Bite {
  name: string;
  spoil(record: JsonObject): void;
}

const BEYOND_DOUBLE = 9_007_199_254_740_993n;
const TEXT_THAT_BREAKS_COPY = 'tab\there\nnewline\r\n\\. \\N back\\slash "quote" \\';

const part = (record: JsonObject, name: string): JsonObject => record[name] as JsonObject;

const ANYWHERE: readonly Bite[] = [
  {
    name: 'NUL',
    spoil(record) {
      part(record, 'click').city = 'Nul\u0000ville';
      part(record, 'link').comments = '\u0000';
    },
  },
  {
    name: 'lone surrogates',
    spoil(record) {
      part(record, 'click').refererUrl = 'https://example.com/\ud800';
      part(record, 'link').title = '\udc00 first';
    },
  },
  {
    name: 'integers above 2^53',
    spoil(record) {
      part(record, 'link').clicks = BEYOND_DOUBLE;
      if (record.sale) part(record, 'sale').amount = BEYOND_DOUBLE;
      if ('metadata' in record) record.metadata = { orderNumber: BEYOND_DOUBLE, negative: -BEYOND_DOUBLE };
    },
  },
  {
    name: 'text that breaks COPY',
    spoil(record) {
      part(record, 'link').comments = TEXT_THAT_BREAKS_COPY;
      if ('eventName' in record) record.eventName = TEXT_THAT_BREAKS_COPY;
    },
  },
  {
    name: 'empty ip',
    spoil(record) {
      part(record, 'click').ip = '';
      record.ip = '';
    },
  },
  {
    name: 'country Unknown',
    spoil(record) {
      for (const field of ['country', 'city', 'continent']) {
        part(record, 'click')[field] = 'Unknown';
        record[field] = 'Unknown';
      }
    },
  },
];

const metadata = (name: string, make: () => Json): Bite => ({
  name,
  spoil(record) {
    record.metadata = make();
  },
});

const IN_METADATA: readonly Bite[] = [
  metadata('NUL and lone surrogates in metadata', () => ({ 'key\u0000': 'a\u0000b', half: '\ud83d' })),
  metadata('metadata over 1 MB', () => ({ blob: 'x'.repeat(1_100_000) })),
  metadata('metadata that is a string', () => 'plan=team'),
  metadata('metadata that is an array', () => [1, 'two', { three: 3 }]),
  metadata('metadata 60 levels deep', () => {
    let nest: Json = 'bottom';
    for (let level = 0; level < 60; level++) nest = { down: nest };
    return nest;
  }),
  // JSON.parse makes an own key of it; an object literal would set the prototype.
  metadata('a key called __proto__', () => JSON.parse('{"__proto__":{"admin":true},"constructor":"x"}') as Json),
];

/** Records that bite, one a way, each made of a sound record. */
export function dirtyRecords(stream: StreamName, sound: (index: number) => JsonObject): JsonObject[] {
  const bites = stream === 'clicks' ? ANYWHERE : [...ANYWHERE, ...IN_METADATA];
  return bites.map((bite, index) => {
    const record = sound(index);
    bite.spoil(record);
    return record;
  });
}
