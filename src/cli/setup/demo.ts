import { type App, withSyncApp } from '../../app/index.ts';
import { type Config, parseConfig } from '../../config/index.ts';
import { startSandboxThread } from '../../sandbox/thread.ts';
import { untilToday } from '../../sandbox/world.ts';
import { type Context, EXIT, type ExitCode, type Register } from '../command.ts';
import { syncAndReport } from '../commands/sync.ts';
import { withJson } from '../options.ts';
import { figure, table } from '../terminal/table.ts';

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
    // The sandbox is at another port each time.
    const config = demoConfig(sandbox.baseUrl, sandbox.apiKey);
    return await withSyncApp({ config, log, adopt: true }, async (app) => {
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
select max(c.link_domain || '/' || c.link_key) as link, count(*) as clicks,
  (select count(*) from attribution.leads l where (l._source, l.link_id) = (c._source, c.link_id)) as leads,
  (select count(*) from attribution.sales s where (s._source, s.link_id) = (c._source, c.link_id)) as sales
from attribution.clicks c where c._source = 'demo'
group by c._source, c.link_id order by clicks desc limit 5`;

interface TopLink {
  link: string;
  clicks: number;
  leads: number;
  sales: number;
}

async function firstLook(app: App): Promise<string> {
  const links = await app.state.query<TopLink>({ text: TOP_LINKS });
  const rows = links.map(({ link, clicks, leads, sales }) => [link, figure(clicks), figure(leads), figure(sales)]);
  const top = table(['link', 'clicks', 'leads', 'sales'], rows);
  return ['', 'top links by clicks:', top, '', 'next: tributary status'].join('\n');
}
