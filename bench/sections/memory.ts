import { type Load, loadsOf } from '../support/loads.ts';
import { type Bar, count, ratio, type Section } from '../support/report.ts';

/** (e) The peak memory of a first sync, by the length of the history. */
export const memory: Section = {
  title: 'Memory',
  async run(size) {
    const loads = await loadsOf(size);
    const peak = (one: Load | undefined): number => one?.peakBytes ?? Number.NaN;
    const of = (sink: Load['sink']): Load[] => loads.filter((one) => one.sink === sink);
    const [postgres, parquet] = [of('Postgres'), of('Parquet')];
    const growth = (all: readonly Load[], i: number): string => ratio(peak(all[i]) / peak(all[0]));
    const flat = (sink: Load['sink']): Bar => {
      const [last, before] = of(sink).reverse();
      return { says: `memory for ten times the rows, into ${sink}`, measured: peak(last) / peak(before), most: 1.1 };
    };
    const most = (sink: Load['sink'], mb: number): Bar => ({
      says: `MB at most, into ${sink}`,
      measured: Math.max(...of(sink).map(peak)) / 1e6,
      most: mb,
    });
    return {
      tables: [
        {
          head: ['rows', 'Postgres, peak MB', 'first = 1', 'Parquet, peak MB', 'first = 1'],
          rows: postgres.map(({ rows }, i) => [
            ...[count(rows), count(peak(postgres[i]) / 1e6), growth(postgres, i)],
            ...[count(peak(parquet[i]) / 1e6), growth(parquet, i)],
          ]),
        },
      ],
      bars: size === 'quick' ? [] : [flat('Postgres'), flat('Parquet'), most('Postgres', 256), most('Parquet', 256)],
    };
  },
};
