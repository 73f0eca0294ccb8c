import { availableParallelism } from 'node:os';
import { type Load, loadsOf } from '../support/loads.ts';
import { type Bar, count, type Report, ratio, type Section, type Size } from '../support/report.ts';

/**
 * (f) The cost of ten times the rows: should be ten times the time and the requests. And how close a sync comes
 * to the machine's limit: its CPU time and Postgres's, spread over all cores.
 */
export const growth: Section = { title: 'Cost growth', run };

/** More than ten, for the fixed costs of a long history. */
const MOST_TIME = 11;
const MOST_REQUESTS = 10.5;
const LEAST_OF_LIMIT = 0.8;
const MOST_CPU_SECONDS = { Postgres: 50, Parquet: 85 } as const;

interface Step {
  from: Load;
  to: Load;
  time: number;
  requests: number;
}

async function run(size: Size): Promise<Report> {
  const loads = await loadsOf(size);
  const steps = (['Postgres', 'Parquet'] as const).flatMap((sink) => stepsOf(loads.filter((one) => one.sink === sink)));
  return {
    tables: [
      {
        head: ['sink', 'rows', 'to', 'time ×', 'requests ×'],
        rows: steps.map(({ from, to, time, requests }) => [
          ...[from.sink, count(from.rows), count(to.rows), ratio(time), ratio(requests)],
        ]),
      },
      {
        head: [
          ...['sink', 'rows', 'CPU s a million rows', 'Postgres beside it', 'the service'],
          ...['cores busy, without the service', 'of the limit', 'cores busy, with it'],
        ],
        rows: loads.map((one) => [
          ...[one.sink, count(one.rows), ratio(perMillion(one, one.cpuSeconds))],
          ...[ratio(perMillion(one, one.serverCpuSeconds)), ratio(perMillion(one, one.serviceCpuSeconds))],
          ...[ratio(coresBusy(one)), ratio(ofLimit(one)), ratio(coresBusy(one) + one.serviceCpuSeconds / one.seconds)],
        ]),
      },
    ],
    // A short sync is mostly start-up, so the longest step counts.
    bars: size === 'quick' ? [] : steps.filter(({ to }) => to.rows === 1_000_000).flatMap(barsOf),
  };
}

const stepsOf = (loads: readonly Load[]): Step[] =>
  loads.slice(1).map((to, i) => {
    const from = loads[i] as Load;
    return { from, to, time: to.seconds / from.seconds, requests: to.requests / from.requests };
  });

const perMillion = ({ rows }: Load, seconds: number): number => (seconds / rows) * 1e6;
const coresBusy = ({ cpuSeconds, serverCpuSeconds, seconds }: Load): number =>
  (cpuSeconds + serverCpuSeconds) / seconds;
/** The share of the time that the work would take on all cores. The service uses some of them, too. */
const ofLimit = (load: Load): number => coresBusy(load) / availableParallelism();

const barsOf = ({ to, time, requests }: Step): Bar[] => [
  { says: `time for ten times the rows, into ${to.sink}`, measured: time, most: MOST_TIME },
  { says: `requests for ten times the rows, into ${to.sink}`, measured: requests, most: MOST_REQUESTS },
  { says: `share of the machine's limit, into ${to.sink}`, measured: ofLimit(to), least: LEAST_OF_LIMIT },
  {
    says: `CPU seconds a million rows, into ${to.sink}`,
    measured: perMillion(to, to.cpuSeconds),
    most: MOST_CPU_SECONDS[to.sink],
  },
];
