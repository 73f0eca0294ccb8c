import { resolve } from 'node:path';
import * as z from 'zod';
import { DAY_MS } from '../model/window.ts';
import { PARTITIONS } from '../sinks/postgres/table.ts';
import { INDEXES } from '../sinks/views/postgres-indexes.ts';
import {
  baseUrl,
  databaseUrl,
  duration,
  fileMode,
  keepSnapshots,
  namespace,
  optionalText,
  place,
  schemaName,
} from './values.ts';

const keep = duration
  .optional()
  .describe('how long events are kept, such as 400d; older ones are deleted; absent: for ever');

const postgresSink = z.strictObject({
  type: z.literal('postgres'),
  url: databaseUrl.describe('absent: the state database'),
  schema: schemaName.describe('schema of the tables; created if it does not exist'),
  partition: z.enum(PARTITIONS).default('none').describe('month: one partition per UTC month, for very large tables'),
  keep,
  indexes: z
    .array(z.enum(INDEXES, `must be some of ${INDEXES.join(', ')}`))
    .default([])
    .describe(`additional indexes for reports and lookups: ${INDEXES.join(', ')}; each slows down every load`),
});

const parquetSink = z.strictObject({
  type: z.literal('parquet'),
  path: place.describe('a folder, or s3://bucket/prefix'),
  partition: z
    .enum(['day', 'hour'])
    .default('day')
    .describe('one file per day or hour; use hour above 100,000 events a day'),
  compression: z.enum(['zstd', 'snappy', 'gzip']).default('zstd').describe('compression of the files'),
  fileMode,
  keep,
});

const sqlCatalog = z.strictObject({ type: z.literal('sql').describe('in the state database, as catalog tributary') });

const restCatalog = z.strictObject({
  type: z.literal('rest').describe('a server with the Iceberg REST protocol'),
  uri: baseUrl('base URL of the server, without /v1: https, or http on a loopback host'),
  token: optionalText.describe('a secret: take it from the environment'),
  warehouse: optionalText.describe('name of the warehouse in the catalog, if the catalog needs one'),
});

const icebergSink = z.strictObject({
  type: z.literal('iceberg'),
  warehouse: place.describe('a folder, or s3://bucket/prefix; tables cannot be moved later'),
  namespace: namespace.describe('namespace of the tables, as in attribution.clicks'),
  keep,
  fileMode,
  catalog: z
    .discriminatedUnion('type', [sqlCatalog, restCatalog], { error: 'must be sql or rest' })
    .default({ type: 'sql' })
    .describe('the Iceberg catalog: sql or rest'),
  keepSnapshots,
});

const SINKS = [postgresSink, parquetSink, icebergSink] as const;
export const sink = z.discriminatedUnion('type', SINKS, { error: 'must be postgres, parquet or iceberg' });

/** Every day is read again two days later. */
const SHORTEST_KEEP_MS = 4 * DAY_MS;

interface ReadAgain {
  lookback: number;
  resweep?: number | undefined;
}

export const readAgainMs = ({ lookback = 0, resweep = 0 }: Partial<ReadAgain> = {}): number =>
  Math.max(SHORTEST_KEEP_MS, lookback, resweep);

/** Events that are read again must be kept: otherwise they would be deleted and restored every night. */
export function keepFault(
  keep: number,
  sources: Readonly<Record<string, { streams: Readonly<Record<string, ReadAgain | undefined>> }>>,
): string | undefined {
  if (keep < SHORTEST_KEEP_MS) return 'must be at least 4d: each day is read again two days later';
  for (const [name, { streams }] of Object.entries(sources)) {
    for (const [stream, settings] of Object.entries(streams)) {
      const { lookback = 0, resweep = 0 } = settings ?? {};
      const [key, ms] = lookback > resweep ? ['lookback', lookback] : ['resweep', resweep];
      if (keep < ms + DAY_MS)
        return `must be a day longer than sources.${name}.streams.${stream}.${key}, which reads that far back`;
    }
  }
  return undefined;
}

type Sinks = Readonly<Record<string, z.output<typeof sink>>>;

/** Sinks that write where an earlier one does: each would treat the other's rows as foreign, and delete them by its own `keep`. */
export function sharedTargets(sinks: Sinks, stateUrl: string | undefined): Array<{ name: string; fault: string }> {
  const owners = new Map<string, string>();
  return Object.entries(sinks).flatMap(([name, one]) => {
    const [key, ...target] = targetOf(one, stateUrl);
    const id = JSON.stringify([key, ...target]);
    const owner = owners.get(id);
    owners.set(id, owner ?? name);
    return owner === undefined ? [] : [{ name, fault: `writes to the same place as sink ${owner}: change its ${key}` }];
  });
}

function targetOf(one: Sinks[string], stateUrl: string | undefined) {
  if (one.type === 'postgres') return ['schema', one.schema, one.url ?? stateUrl];
  if (one.type === 'parquet')
    return ['path', one.path.startsWith('s3://') ? one.path.replace(/\/+$/, '') : resolve(one.path)];
  const { catalog } = one;
  return ['namespace', one.namespace, ...(catalog.type === 'rest' ? [catalog.uri, catalog.warehouse] : [])];
}
