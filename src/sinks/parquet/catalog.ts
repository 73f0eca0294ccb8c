import { type AnyFeed, type CoverageRow, readCoverage } from '../../cursor/ledger.ts';
import type { Kind } from '../../model/columns.ts';
import { ConfigError } from '../../model/errors.ts';
import { BOOKKEEPING, type Stream, type StreamName } from '../../model/streams.ts';
import { inChange } from '../files/change.ts';
import { schemaVersion, unitedColumns } from '../files/partition-file.ts';
import { readSmall, writeSmall } from '../files/store/store.ts';
import type { FileColumn } from './format/index.ts';
import { type Lake, partitionPath, type Scheme } from './lake.ts';

/** Describes the lake for other readers. The name does not match a glob for `*.parquet`. */
const CATALOG = '_catalog.json';

interface Catalog {
  about: string;
  partition: Scheme;
  layout: string;
  streams: Partial<Record<StreamName, CatalogStream>>;
}

interface CatalogStream {
  doc: string;
  files: string;
  /** The version of the current columns. Files with other columns have another version in their metadata. */
  schema: string;
  columns: CatalogColumn[];
}

interface CatalogColumn extends FileColumn {
  parquet: string;
  doc: string;
  deprecated?: string;
}

const PARQUET: Readonly<Record<Kind, string>> = {
  text: 'STRING',
  integer: 'INT64',
  number: 'DOUBLE (and all the digits in _exact_<name>, where a double is not exact)',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP (microseconds, UTC)',
  json: 'JSON (a string, for readers that do not know it)',
};

/** Writes the catalogue if it is out of date. Throws for a lake of another layout. */
export async function prepareLake(lake: Lake, stream: Stream): Promise<void> {
  await inChange(lake.state, catalogLock(lake), async () => {
    const { text, present, identity } = await readCatalog(lake);
    checkScheme(lake, present?.partition);
    const streams = { ...present?.streams, [stream.name]: describe(stream, present?.streams[stream.name]) };
    const catalog: Catalog = {
      about: 'A lake of Parquet files, kept in sync by Tributary. See README.md.',
      partition: lake.scheme,
      layout: `<stream>/${partitionPath(lake.scheme, 0).replace(/\d+/g, '…')}/<source>.parquet`,
      streams,
    };
    const wanted = `${JSON.stringify(catalog, null, 2)}\n`;
    if (wanted !== text) await writeText(lake, CATALOG, wanted, identity);
    // Written once, so that edits by people stay.
    if (!(await readSmall(lake.store, 'README.md'))) await writeText(lake, 'README.md', README(lake.scheme), undefined);
  });
}

async function readCatalog({ store }: Lake) {
  const file = await readSmall(store, CATALOG);
  const text = file?.bytes.toString();
  return { text, present: text === undefined ? undefined : parse(text), identity: file?.identity };
}

const writeText = async ({ store }: Lake, path: string, text: string, over: string | undefined): Promise<string> =>
  writeSmall(await store.stage(path), text, over);

export const shownColumns = async (lake: Lake, stream: StreamName): Promise<readonly FileColumn[]> =>
  (await readCatalog(lake)).present?.streams[stream]?.columns ?? [];

/** Streams are prepared concurrently but share one file. */
const catalogLock = ({ name }: Lake): string => `lake ${name} catalogue`;

function parse(text: string): Catalog {
  try {
    const catalog = JSON.parse(text) as Partial<Catalog>;
    if (catalog.partition && catalog.streams) return catalog as Catalog;
  } catch {
    // Recovery: handled like valid JSON that is not our catalogue.
  }
  throw new ConfigError(`${CATALOG} in the lake was not written by Tributary`, {
    kept: 'the file as it is; nothing was written',
    next: 'move it away, or give the sink another path; then run again',
  });
}

/** In a lake with daily and hourly files, readers would count an event twice. */
function checkScheme({ name, scheme, store }: Lake, present: Scheme | undefined): void {
  if (present === undefined || present === scheme) return;
  throw new ConfigError(`sink "${name}" is set to one file per ${scheme}, but its lake has one file per ${present}`, {
    kept: `${store.place}, as they are`,
    next: `set partition of the sink to ${present} again, or give it a new path: it fills by itself`,
  });
}

/** Columns that only older files have stay in the list. */
function describe(stream: Stream, present: CatalogStream | undefined): CatalogStream {
  const columns = unitedColumns(
    stream,
    (present?.columns ?? []).map(({ name, kind, nullable }) => ({ name, kind, nullable })),
  );
  const declared = new Map<string, { doc: string; deprecated?: string }>(
    [...stream.columns, ...BOOKKEEPING].map((column) => [column.name, column]),
  );
  const before = new Map(present?.columns.map((column) => [column.name, column]));
  return {
    doc: stream.doc,
    files: `${stream.name}/**/*.parquet`,
    schema: schemaVersion(columns),
    columns: columns.map((column) => {
      const known = declared.get(column.name);
      return {
        ...column,
        parquet: PARQUET[column.kind],
        doc: known?.doc ?? before.get(column.name)?.doc ?? '',
        ...(known?.deprecated !== undefined && { deprecated: known.deprecated }),
      };
    }),
  };
}

/** The coverage of each stream, as rows for `read_json`. It may lag one run behind the state but is never ahead of it. */
const COVERAGE = '_coverage.json';

export async function showCoverage(lake: Lake, { source, stream }: Pick<AnyFeed, 'source' | 'stream'>): Promise<void> {
  const row = await readCoverage(lake.state, { source, stream, sink: lake.name });
  if (row) await replaceRow(lake, { source, stream }, row);
}

export const hideCoverage = (lake: Lake, of: Pick<AnyFeed, 'source' | 'stream'>): Promise<void> => replaceRow(lake, of);

async function replaceRow(lake: Lake, of: Pick<AnyFeed, 'source' | 'stream'>, row?: CoverageRow): Promise<void> {
  await inChange(lake.state, catalogLock(lake), async () => {
    // Every run comes here, and nothing else removes leftovers of this file and of the catalogue.
    await lake.store.removeLeftovers();
    const file = await readSmall(lake.store, COVERAGE);
    const rows = file ? (JSON.parse(file.bytes.toString()) as CoverageRow[]) : [];
    const others = rows.filter(({ source, stream }) => source !== of.source || stream !== of.stream);
    if (!row && others.length === rows.length) return;
    const all = [...others, ...(row ? [row] : [])].sort((a, b) =>
      `${a.source} ${a.stream}` < `${b.source} ${b.stream}` ? -1 : 1,
    );
    await writeText(lake, COVERAGE, `${JSON.stringify(all, null, 2)}\n`, file?.identity);
  });
}

export const README = (scheme: Scheme): string => `# A lake of events

Clicks, leads and sales of a link-attribution service, kept in sync by Tributary. One Parquet file per ${scheme} (UTC) and source:

    clicks/date=2026-11-14/${scheme === 'hour' ? 'hour=07/' : ''}main.parquet

\`_catalog.json\` names every column and says what it holds. \`_coverage.json\` says what is complete: every event from \`since\` up to
\`complete_through\` that the \`filters\` let through, except \`set_aside\` records; and the ranges in \`also_complete\`. In DuckDB:

    select date, count(*) from read_parquet('clicks/**/*.parquet', hive_partitioning = true, union_by_name = true) group by date;

Files are replaced whole: read them at any time. Please do not change them; put files of your own elsewhere.
`;
