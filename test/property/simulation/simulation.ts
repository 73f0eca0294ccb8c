import { toIso } from '../../../src/model/instant.ts';
import { describeWindow } from '../../../src/model/window.ts';
import { createMemorySink } from '../../support/memory-sink.ts';
import { createMemorySync } from '../../support/memory-sync.ts';
import { HOUR, MINUTE } from '../../support/sandbox-sync.ts';
import { flattenPair } from '../../support/simulated-service.ts';
import { createInvariants } from './invariants.ts';
import { createScenario, type Scenario, type ScenarioOptions } from './scenario.ts';

const CALM_DAYS = 5;
const RUNS_TO_REST = 3;

/** The process ended between two commits, or during one. */
class Crash extends Error {}

export interface SimulationOptions extends ScenarioOptions {
  tell?: ((line: string) => void) | undefined;
}

/** One seed: first sync, polls, crashes and refusals in a changing world; then calm days, after which everything must be stored. */
export async function simulate(seed: number, { tell, ...options }: SimulationOptions = {}) {
  const scenario = createScenario(seed, options);
  const { random, service, since, policy, pageRows } = scenario;
  const sink = createMemorySink(service.ourNow);
  const invariants = createInvariants(scenario, sink);
  const result = { requests: 0, runs: 0, crashes: 0, refusals: 0, doubts: 0 };
  let mayCrash = random.chance(0.4) && !options.steady ? 0.1 : 0;
  const say = tell ?? (() => {});
  say(scenario.describe());
  if (tell) tellRequests(scenario, tell);
  const { onRequest } = service;
  service.onRequest = (...request) => {
    invariants.beforeRequest();
    onRequest(...request);
  };

  sink.onCommit = (moment, { spans, ...advance }) => {
    if (moment === 'after') {
      const spansText = spans.map((span) => `${span.certified ? '+' : '?'}${describeWindow(span)}${span.note ?? ''}`);
      say(`  commit ${spansText.join(' ')}`);
      invariants.afterCommit({ spans, ...advance });
    }
    if (random.chance(mayCrash)) throw new Crash(`crash ${moment} a commit`);
  };
  const sync = createMemorySync({
    api: service,
    sink,
    flatten: flattenPair,
    since,
    policy,
    now: service.ourNow,
    mostRows: pageRows,
    commitsNow: () => random.chance(0.5),
    lanes: random.int(1, 4),
    pagesWorth: random.chance(0.5) ? 1 : 3,
    onWindow: (window) => say(`  sweep ${describeWindow(window)}`),
    isCrash: (error) => error instanceof Crash,
  });

  async function run(): Promise<void> {
    result.runs += 1;
    say(
      `run ${result.runs} at ${toIso(service.now())}, complete through ${toIso(sink.cursor()?.completeThrough ?? 0)}`,
    );
    invariants.runStarts();
    const { error, hasDoubts } = await sync.run();
    if (error) say(`  ended: ${error.message}`);
    if (error) result[error instanceof Crash ? 'crashes' : 'refusals'] += 1;
    if (hasDoubts) result.doubts += 1;
    invariants.runEnds(!error && !hasDoubts);
  }

  const finish = (): typeof result => {
    invariants.settled();
    return { ...result, requests: service.requests() };
  };

  if (options.steady) {
    for (let runs = 0; runs < RUNS_TO_REST; runs++) {
      await run();
      if (runs < RUNS_TO_REST - 1) scenario.idle(27 * HOUR);
    }
    return finish();
  }
  for (let polls = random.int(2, 7); polls > 0; polls--) {
    await run();
    scenario.idle(random.chance(0.8) ? random.int(1, 10) * MINUTE : random.int(1, 30) * HOUR);
  }
  mayCrash = 0;
  scenario.calmDown();
  for (let day = 0; day < CALM_DAYS; day++) {
    scenario.idle(27 * HOUR);
    await run();
  }
  return finish();
}

function tellRequests({ service }: Scenario, say: (line: string) => void): void {
  const { onAnswer } = service;
  service.onAnswer = (query, shown) => {
    const rows = shown.map((e) => `${e.id}${e.hidden ? '(hidden)' : ''}@${toIso(e.at).slice(8, 23)}`).join(' ');
    say(
      `    ${query.sortOrder} ${toIso(query.start)} to ${toIso(query.end)} page ${query.page} × ${query.limit}: ${rows || 'nothing'}`,
    );
    onAnswer(query, shown);
  };
}
