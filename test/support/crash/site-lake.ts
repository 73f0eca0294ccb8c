import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamName } from '../../../src/model/streams.ts';
import { download } from '../lake-place.ts';
import { filesIn, globOf, queryDuckdb } from '../lake-readers.ts';
import type { S3Server } from '../s3-server.ts';
import type { Found, Site } from './sites.ts';

/** What belongs into a lake: anything else was left behind. */
const BELONGS = /^(?:\w+\/date=[\d-]+\/source-\d+\.parquet|_catalog\.json|_coverage\.json|README\.md)$/;

/** A lake in a folder, as the glob of a person finds it. */
export function folderSite(dir: string): Site {
  const path = join(dir, 'lake');
  const empty = (): Promise<void> => rm(path, { recursive: true });
  return { name: 'folder', settings: { type: 'parquet', path }, empty, ...readersOf(path) };
}

/** A lake in a bucket, as a copy of it shows. */
export function bucketSite(server: S3Server, source: string, dir: string): Site {
  const prefix = `lakes/${source}`;
  const path = join(dir, 'copy');
  const { leftovers, ...readers } = readersOf(path);
  return {
    name: 's3',
    settings: { type: 'parquet', path: `s3://${server.bucket}/${prefix}` },
    ...readers,
    async look() {
      await rm(path, { recursive: true, force: true });
      await download(server, `${prefix}/`, path);
    },
    async leftovers() {
      const uploads = server.uploads().filter((key) => key.startsWith(`${prefix}/`));
      return [...(await leftovers()), ...uploads.map((key) => `an unfinished upload of ${key}`)];
    },
  };
}

function readersOf(path: string): Pick<Site, 'events' | 'shown' | 'leftovers'> {
  const files = async (): Promise<string[]> => (existsSync(path) ? filesIn(path) : []);
  return {
    async events(stream) {
      const isThere = (file: string): boolean => file.startsWith(`${stream}/`) && file.endsWith('.parquet');
      return (await files()).some(isThere) ? queryLake(path, stream) : [];
    },
    async shown(stream) {
      const text = await readFile(join(path, '_coverage.json'), 'utf8').catch(() => '[]');
      const rows = JSON.parse(text) as Array<{ stream: string; complete_through: string | null }>;
      const through = rows.find((row) => row.stream === stream)?.complete_through;
      return through ? Date.parse(through) : undefined;
    },
    leftovers: async () => (await files()).filter((file) => !BELONGS.test(file)),
  };
}

async function queryLake(path: string, stream: StreamName): Promise<Found[]> {
  const of = stream === 'clicks' ? 'null as name, null as customer' : 'event_name as name, customer_id as customer';
  const rows = await queryDuckdb(
    `select event_id as id, epoch_ms("timestamp") as at, ${of} from ${globOf(path, stream)}`,
  );
  return rows.map((row) => ({ ...row, at: Number(row.at) }) as Found);
}
