import type { Scheme } from './partition.ts';

/** What stands in the lake for whoever finds it. */
export const README = (scheme: Scheme): string => `# A lake of events

Clicks, leads and sales of a link-attribution service, kept in sync by Tributary. One Parquet file per ${scheme} (UTC) and source:

    clicks/date=2026-11-14/${scheme === 'hour' ? 'hour=07/' : ''}main.parquet

\`_catalog.json\` names every column and says what it holds. In DuckDB:

    select date, count(*) from read_parquet('clicks/**/*.parquet', hive_partitioning = true, union_by_name = true) group by date;

Files are replaced whole: read them at any time. Please do not change them; put files of your own elsewhere.
`;
