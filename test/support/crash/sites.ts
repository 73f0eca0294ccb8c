import type { StreamName } from '../../../src/model/streams.ts';
import { type Engine, emptyEngine, openEngine } from '../engine.ts';
import { startRedis } from '../redis.ts';
import { type S3Server, startS3 } from '../s3-server.ts';
import { tablesSite } from './site-iceberg.ts';
import { bucketSite, folderSite } from './site-lake.ts';
import { warehouseSite } from './site-warehouse.ts';

/** An event as a reader of a sink finds it. */
export interface Found {
  id: string;
  at: number;
  /** Of a lead or a sale. */
  name: string | null;
  customer: string | null;
}

/** Where the rows of one case go, and what a reader finds there who knows nothing of Tributary. */
export interface Site {
  name: SiteName;
  /** As the config has it. */
  settings: object;
  /** Takes a new look, where what is read is a copy. */
  look?(): Promise<void>;
  events(stream: StreamName): Promise<Found[]>;
  /** The watermark as it is shown beside the data; undefined where none is. */
  shown(stream: StreamName): Promise<number | undefined>;
  /** What does not belong there once nobody is at work. */
  leftovers(): Promise<string[]>;
  /** Deletes every row, as somebody who knows nothing of Tributary would. */
  empty?(): Promise<void>;
  /** Makes everything there so much older, where age matters. */
  age?(ms: number): Promise<void>;
  /** Where the sink has a table of them. */
  customers?(): Promise<string[]>;
}

export type SiteName = 'here' | 'elsewhere' | 'further' | 'folder' | 's3' | 'tables';

/** Servers for one case at a time. Those that are in hand at once must not meet: one that stands still keeps its locks. */
export interface Grounds {
  state: Engine;
  elsewhere: Engine;
  s3: S3Server;
  /** The URL of a Redis. */
  redis: string;
}

export async function openGrounds(count: number): Promise<{ grounds: Grounds[]; close(): Promise<void> }> {
  const [s3, redis] = await Promise.all([startS3(), startRedis()]);
  Object.assign(process.env, s3.environment);
  const grounds = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({
      state: await openEngine(),
      elsewhere: await emptyEngine(),
      s3,
      redis: `${redis.url}/${i}`,
    })),
  );
  return {
    grounds,
    async close() {
      for (const { state, elsewhere } of grounds) await Promise.all([state.close(), elsewhere.close()]);
      await s3.close();
    },
  };
}

export function siteOf(name: SiteName, { state, elsewhere, s3 }: Grounds, source: string, dir: string): Site {
  switch (name) {
    case 'folder':
      return folderSite(dir);
    case 's3':
      return bucketSite(s3, source, dir);
    case 'tables':
      return tablesSite(state.db, source, dir);
    case 'here':
      return warehouseSite(name, { db: state.db, source, schema: 'attribution' });
    case 'elsewhere':
      return warehouseSite(name, { ...elsewhere, source, schema: 'attribution' });
    case 'further':
      return warehouseSite(name, { ...elsewhere, source, schema: 'further' });
  }
}
