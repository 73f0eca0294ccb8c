import { once } from 'node:events';
import { ConfigError } from '../model/errors.ts';
import { startSandbox } from '../sandbox/server.ts';
import { untilToday } from '../sandbox/today.ts';
import { parseTraits, TRAITS } from '../sandbox/traits.ts';
import type { CommonOptions, Register } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { withJson } from './options.ts';

const EXAMPLES = `
Examples:
  tributary sandbox --port 8787
  tributary sandbox --trait widen=day --trait shuffleTies --trait dropAfterLimit=0.1
  tributary sandbox --port 0 --json     prints {"baseUrl","apiKey"} once it listens

Traits, each a way in which deployed services differ from the contract:
${TRAITS.map(({ name, values, doc }) => `  ${`${name}${values ? `=${values}` : ''}`.padEnd(44)} ${doc}`).join('\n')}`;

interface SandboxFlags extends CommonOptions {
  port: string;
  seed: string;
  plan: string;
  clicks: string;
  leads: string;
  sales: string;
  days: string;
  live: string;
  trait: string[];
}

const collect = (value: string, all: string[]): string[] => [...all, value];

export const registerSandbox: Register = (program, action) => {
  const command = program
    .command('sandbox')
    .description('play the service over real HTTP on 127.0.0.1, on generated data')
    .option('--port <N>', 'port to listen on; 0 takes a free one', '8787')
    .option('--seed <N>', 'what the data is generated from, together with the date', '1')
    .option('--plan <NAME>', 'pro (2/s), business (4/s), advanced (8/s), free (refused)', 'business')
    .option('--clicks <N>', 'clicks of history', '12000')
    .option('--leads <N>', 'leads of history', '1500')
    .option('--sales <N>', 'sales of history', '500')
    .option('--days <N>', 'days that the history spans, up to yesterday', '30')
    .option('--live <N>', 'new events per second', '0')
    .option('--trait <NAME[=VALUE]>', 'a way of deployed services; may be given again', collect, [])
    .addHelpText('after', EXAMPLES);
  withJson(command).action(
    action(async ({ terminal, signal }, flags: SandboxFlags) => {
      const sandbox = await startSandbox({
        port: number('port', flags.port, 65_535),
        ...untilToday(number('seed', flags.seed)),
        plan: plan(flags.plan),
        rows: {
          clicks: number('clicks', flags.clicks, 2_000_000),
          leads: number('leads', flags.leads, 2_000_000),
          sales: number('sales', flags.sales, 2_000_000),
        },
        days: number('days', flags.days, 36_500),
        live: { perSecond: number('live', flags.live, 10_000) },
        traits: parseTraits(flags.trait),
      });
      const { baseUrl, apiKey } = sandbox;
      terminal.out(
        flags.json
          ? JSON.stringify({ baseUrl, apiKey })
          : `the sandbox listens on ${baseUrl}, key ${apiKey}; Ctrl-C stops it\ntry: curl -H 'Authorization: Bearer ${apiKey}' '${baseUrl}/events?limit=1'`,
      );
      if (!signal.aborted) await once(signal, 'abort');
      await sandbox.close();
      return EXIT.done;
    }),
  );
};

const PLANS = ['free', 'pro', 'business', 'advanced', 'enterprise'] as const;

function plan(text: string): (typeof PLANS)[number] {
  const found = PLANS.find((name) => name === text);
  if (!found) throw new ConfigError(`--plan must be one of ${PLANS.join(', ')}`);
  return found;
}

function number(flag: string, text: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= most))
    throw new ConfigError(`--${flag} must be a number from 0 to ${most}`);
  return value;
}
