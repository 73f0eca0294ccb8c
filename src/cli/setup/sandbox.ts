import { once } from 'node:events';
import { Option } from 'commander';
import { ConfigError } from '../../model/errors.ts';
import { PLAN_LIMITS, type Plan } from '../../sandbox/answer.ts';
import { untilToday } from '../../sandbox/data/world.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../sandbox/server.ts';
import { readTrait, TRAITS, type Traits } from '../../sandbox/traits.ts';
import { command, EXIT, type Options, parseWhole } from '../command.ts';
import { describeTerm } from '../terminal.ts';

const describeTrait = ({ name, values, bare, doc }: (typeof TRAITS)[number]): string =>
  describeTerm(
    values ? `${name}=${values}` : name,
    bare && values !== 'true|false' ? `${doc}; without a value: ${bare}` : doc,
    34,
  );

const EXAMPLES = `Examples:
  tributary sandbox --port 8787
  tributary sandbox --trait limitCap=50 --live 2 --trait lateness=90s
  tributary sandbox --port 0 --json   one line, {"baseUrl","apiKey"}

Traits: behaviours in which deployed services differ from the contract:
${TRAITS.map(describeTrait).join('\n')}`;

type Numbers = Record<'port' | 'seed' | 'clicks' | 'leads' | 'sales' | 'links' | 'days' | 'live', number>;
type SandboxFlags = Options & Numbers & { plan: Plan; trait?: string[] };

const MOST_LIVE = 10_000;
const collect = (value: string, all: string[] = []): string[] => [...all, value];

export const registerSandbox = command('sandbox', {
  does: 'simulate the service over HTTP on 127.0.0.1, with generated data',
  options: [
    ['--port <N>', 'port to listen on; 0: any free port', parseWhole('port', 65_535), 8787],
    ['--seed <N>', 'seed of the generated data, with the date', parseWhole('seed', 1_000_000_000), 1],
    new Option('--plan <NAME>', 'the plan whose limits it enforces')
      .choices(Object.keys(PLAN_LIMITS))
      .default('business'),
    ['--clicks <N>', 'clicks of history', parseWhole('clicks', 2_000_000), 12_000],
    ['--leads <N>', 'leads of history', parseWhole('leads', 2_000_000), 1500],
    ['--sales <N>', 'sales of history', parseWhole('sales', 2_000_000), 500],
    ['--links <N>', 'additional links without events', parseWhole('links', 1_000_000), 24],
    ['--days <N>', 'days that the history spans, up to yesterday', parseWhole('days', 36_500), 30],
    ['--live <N>', 'new events per second', perSecond, 0],
    new Option('--trait <NAME[=VALUE]>', 'a behaviour of deployed services; may be repeated').argParser(collect),
    'json',
  ],
  more: EXAMPLES,
  async run({ terminal, signal, document }, flags: SandboxFlags) {
    const { port, plan, clicks, leads, sales, links, days, live, json } = flags;
    const sandbox = await listen({
      port,
      plan,
      ...untilToday(flags.seed),
      rows: { clicks, leads, sales },
      quietLinks: links,
      days,
      perSecond: live,
      traits: (flags.trait ?? []).reduce((traits: Traits, text) => readTrait(text, traits), {}),
    });
    const { baseUrl, apiKey } = sandbox;
    terminal.out(json ? document({ baseUrl, apiKey }, { isLine: true }) : greeting(baseUrl, apiKey));
    if (!signal.aborted) await once(signal, 'abort');
    await sandbox.close();
    return EXIT.done;
  },
});

const greeting = (baseUrl: string, apiKey: string): string =>
  [
    `the sandbox listens on ${baseUrl}, key ${apiKey}; Ctrl-C stops it`,
    `try: curl -H 'Authorization: Bearer ${apiKey}' '${baseUrl}/events?limit=1'`,
  ].join('\n');

async function listen(options: SandboxOptions): Promise<Sandbox> {
  try {
    return await startSandbox(options);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const reason = { EADDRINUSE: 'another program listens there', EACCES: 'this user may not' }[String(code)];
    if (reason === undefined) throw error;
    throw new ConfigError(`the sandbox cannot listen on port ${options.port}: ${reason}`, {
      next: 'choose another with --port N; --port 0 uses any free port',
    });
  }
}

function perSecond(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value <= MOST_LIVE) return value;
  throw new ConfigError(`--live must be a number from 0 to ${MOST_LIVE}`);
}
