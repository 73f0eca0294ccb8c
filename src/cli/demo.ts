import { type App, withSyncApp } from '../app.ts';
import { parseConfig } from '../config.ts';
import type { Config } from '../config-schema.ts';
import { startSandboxThread } from '../sandbox/start-thread.ts';
import { untilToday } from '../sandbox/today.ts';
import type { Context, Register } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { withJson } from './options.ts';
import { syncAndReport } from './sync.ts';
import { figure, table } from './terminal/table.ts';

const EXAMPLES = `
Example:
  tributary demo

Starts the sandbox service and an embedded Postgres, syncs all three streams
inside the plan's budget, and shows a first query. It needs no key, no Redis and
no Postgres, and leaves the data in .tributary/, for tributary status to show.`;

export const registerDemo: Register = (program, action) => {
  const command = program
    .command('demo')
    .description('see it work: the sandbox service into an embedded Postgres')
    .addHelpText('after', EXAMPLES);
  withJson(command).action(action((context, options: { json?: boolean }) => demo(context, options.json === true)));
};

async function demo(context: Context, json: boolean): Promise<ExitCode> {
  const { terminal, log } = context;
  const say = (text: string): void => void (json || terminal.out(text));
  const sandbox = await startSandboxThread(untilToday(1));
  try {
    say(`the sandbox service plays a workspace on ${sandbox.baseUrl}`);
    return await withSyncApp({ config: demoConfig(sandbox.baseUrl, sandbox.apiKey), log }, async (app) => {
      say(`the tables are in an ${app.stateName}\n`);
      const code = await syncAndReport(context, app, { json });
      if (code === EXIT.done && !json) say(await firstLook(app));
      return code;
    });
  } finally {
    await sandbox.close();
  }
}

function demoConfig(baseUrl: string, apiKey: string): Config {
  const text = `sources: { demo: { baseUrl: "${baseUrl}", apiKey: "${apiKey}", plan: business, since: 31d } }`;
  return parseConfig(text, 'demo', {}).config;
}

/** A first question to the tables, as an analyst would ask it. */
const TOP_LINKS = `
select c.link_domain || '/' || c.link_key as link, count(*) as clicks,
       count(distinct l.event_id) as leads, coalesce(max(s.sales), 0) as sales, coalesce(max(s.cents), 0) as cents
from attribution.clicks c
left join attribution.leads l using (_source, click_id)
left join (select _source, link_id, count(*) as sales, sum(sale_amount)::bigint as cents from attribution.sales group by 1, 2) s
  on (s._source, s.link_id) = (c._source, c.link_id)
where c._source = 'demo'
group by c._source, c.link_id, 1 order by clicks desc limit 5`;

interface TopLink {
  link: string;
  clicks: number;
  leads: number;
  sales: number;
  cents: number;
}

async function firstLook(app: App): Promise<string> {
  const links = await app.state.query<TopLink>({ text: TOP_LINKS });
  const rows = links.map(({ link, clicks, leads, sales, cents }) => [
    link,
    figure(clicks),
    figure(leads),
    figure(sales),
    `${figure(Math.floor(cents / 100))}.${String(cents % 100).padStart(2, '0')}`,
  ]);
  return [
    '',
    'top links by clicks:',
    table(['link', 'clicks', 'leads', 'sales', 'revenue'], rows),
    '',
    'next: tributary status',
  ].join('\n');
}
