import { emptyTally } from '../../src/cursor/runs.ts';
import { createReader } from '../../src/extract/certified-reader.ts';
import type { Profile } from '../../src/extract/reader.ts';
import { Fault } from '../../src/model/errors.ts';
import { toIso } from '../../src/model/instant.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { describeWindow } from '../../src/model/window.ts';
import { bringUpToDate } from '../../src/sync/bring-up-to-date.ts';
import { createCommitter } from '../../src/sync/committer.ts';
import { createInvariants } from './invariants.ts';
import { createMemorySink } from './memory-sink.ts';
import { createScenario } from './scenario.ts';
import { flattenPair } from './simulated-service.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The process ended between two commits, or in one. */
class Crash extends Error {}

export interface SimulationResult {
  requests: number;
  runs: number;
  crashes: number;
  refusals: number;
  doubts: number;
}

/** One seed: first sync, polls, crashes and refusals in a world that moves; then calm days, after which all must be there. */
export async function simulate(seed: number, say: (line: string) => void = () => {}): Promise<SimulationResult> {
  const scenario = createScenario(seed);
  const { random, service, since, upkeep } = scenario;
  const sink = createMemorySink(service.ourNow);
  const invariants = createInvariants(scenario, sink);
  const crashShare = random.chance(0.4) ? 0.1 : 0;
  const result: SimulationResult = { requests: 0, runs: 0, crashes: 0, refusals: 0, doubts: 0 };
  let profile: Profile = { granularity: 'exact', tickMs: 1000, pageRows: scenario.pageRows };
  let mayCrash = crashShare;
  say(scenario.describe());
  tellRequests(scenario, say);

  sink.onCommit = (moment, advance) => {
    if (moment === 'after') {
      say(
        `  commit ${advance.spans.map((s) => `${s.certified ? '+' : '?'}${describeWindow(s)}${s.note ?? ''}`).join(' ')}`,
      );
      invariants.afterCommit(advance);
    }
    if (random.chance(mayCrash)) throw new Crash(`crash ${moment} a commit`);
  };

  async function run(): Promise<void> {
    result.runs += 1;
    invariants.runStarts();
    const cursor = sink.cursor();
    say(`run ${result.runs} at ${toIso(service.now())}, complete through ${toIso(cursor?.completeThrough ?? 0)}`);
    const reader = createReader({
      api: service,
      stream: 'clicks',
      filters: {},
      flatten: flattenPair,
      profile,
      mostRows: scenario.pageRows,
      now: service.ourNow,
    });
    const committer = createCommitter({
      sinks: [sink],
      stream: STREAMS.clicks,
      base: { source: 'main', runId: `run${result.runs}`, epoch: 1, since },
      tally: emptyTally(),
      serverNow: reader.serverNow,
      onCommit: () => {},
    });
    // The real committer waits for 5,000 rows; here any slice may be the last one of a commit.
    const add: typeof committer.add = async (slice) => {
      await committer.add(slice);
      if (random.chance(0.5)) await committer.flush();
    };
    let failed = false;
    try {
      try {
        await bringUpToDate({
          upkeep,
          standing: { since, cursor, ledgers: async () => [sink.ledger()] },
          reader,
          committer: { add, flush: committer.flush },
          signal: new AbortController().signal,
          onWindow: (window) => say(`  sweep ${describeWindow(window)}`),
        });
      } finally {
        await committer.flush();
        profile = reader.profile();
      }
    } catch (error) {
      if (!(error instanceof Fault) && !(error instanceof Crash)) throw error;
      failed = true;
      if (error instanceof Crash) result.crashes += 1;
      else result.refusals += 1;
      say(`  ended: ${error.message}`);
    }
    if (committer.hasDoubts()) result.doubts += 1;
    invariants.runEnds(!failed && !committer.hasDoubts());
  }

  const polls = random.int(2, 7);
  for (let poll = 0; poll < polls; poll++) {
    await run();
    scenario.idle(random.chance(0.8) ? random.int(1, 10) * MINUTE : random.int(1, 30) * HOUR);
  }
  mayCrash = 0;
  scenario.calmDown();
  for (let day = 0; day < 5; day++) {
    scenario.idle(27 * HOUR);
    await run();
  }
  invariants.settled();
  result.requests = service.requests();
  return result;
}

function tellRequests({ service }: ReturnType<typeof createScenario>, say: (line: string) => void): void {
  const { onAnswer } = service;
  service.onAnswer = (query, shown) => {
    const rows = shown.map((e) => `${e.id}${e.hidden ? '(hidden)' : ''}@${toIso(e.at).slice(8, 23)}`).join(' ');
    say(`    ${query.sortOrder} from ${toIso(query.start)} page ${query.page} × ${query.limit}: ${rows || 'nothing'}`);
    onAnswer(query, shown);
  };
}
