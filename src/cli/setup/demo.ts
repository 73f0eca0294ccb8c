import { type App, hasState, withSinks, withSyncApp } from '../../app/index.ts';
import { type Config, parseConfig } from '../../config/index.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { untilToday } from '../../sandbox/data/world.ts';
import { startSandboxThread } from '../../sandbox/thread.ts';
import { forget } from '../../sync/maintain/forget.ts';
import { type Context, command, EXIT, type ExitCode, show } from '../command.ts';
import { syncAndReport } from '../commands/sync.ts';
import { withRetryLines } from '../progress.ts';
import { figure, table } from '../terminal.ts';

/** Not `attribution`: a report over the real tables must never count rows of the demo. */
const SCHEMA = 'demo';

const EXAMPLES = `Examples:
  tributary demo
  tributary demo --remove     remove everything it created

Starts the sandbox service and an embedded Postgres, syncs all three streams
within the plan's budget, and shows a first query. It needs no key, no Redis and
no Postgres. Its rows are separate from yours: source demo, in schema ${SCHEMA}
of the database in .tributary/. tributary status shows it.`;

export const registerDemo = command('demo', {
  does: 'try it: sync the sandbox service into an embedded Postgres',
  options: [['--remove', 'remove its rows, tables and cursors again'], 'json'],
  more: EXAMPLES,
  run: (context, { json = false, remove: isOver = false }: { json?: boolean; remove?: boolean }) =>
    (isOver ? remove : demo)(context, json),
});

async function demo(context: Context, json: boolean): Promise<ExitCode> {
  const { terminal } = context;
  const log = withRetryLines(context.log, terminal);
  const say = (text: string): void => void (json || terminal.out(text));
  const sandbox = await startSandboxThread(untilToday(1));
  try {
    say(`the sandbox service simulates a workspace at ${sandbox.baseUrl}`);
    // `adopt`, because the sandbox listens on another port each time.
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

/** Removes what the demo left: rows, tables, cursors and runs. The rest of the database stays. */
async function remove(context: Context, json: boolean): Promise<ExitCode> {
  const { log } = context;
  const config = demoConfig('http://127.0.0.1:1', 'none');
  const touched = !hasState(config)
    ? {}
    : await withSinks({ config, log }, async ({ state, sinks }) => {
        const erased = await forget({ state, sinks, holder: holderOf('demo') }, { source: 'demo', kind: 'source' });
        await state.query({ text: `drop schema if exists ${SCHEMA} cascade` });
        return erased;
      });
  return show(context, { json }, { touched }, () => 'everything of the demo was removed from .tributary/');
}

function demoConfig(baseUrl: string, apiKey: string): Config {
  const text = `{ sources: { demo: { baseUrl: "${baseUrl}", apiKey: "${apiKey}", plan: business, since: 31d } },
    sinks: { warehouse: { type: postgres, schema: ${SCHEMA} } } }`;
  return parseConfig(text, 'demo', {}).config;
}

/** A first query, as an analyst would write it. */
const TOP_LINKS = `
select max(c.link_domain || '/' || c.link_key) as link, count(*) as clicks,
  (select count(*) from ${SCHEMA}.leads l where (l._source, l.link_id) = (c._source, c.link_id)) as leads,
  (select count(*) from ${SCHEMA}.sales s where (s._source, s.link_id) = (c._source, c.link_id)) as sales
from ${SCHEMA}.clicks c where c._source = 'demo'
group by c._source, c.link_id order by clicks desc limit 5`;

async function firstLook(app: App): Promise<string> {
  const links = await app.state.query<Record<'clicks' | 'leads' | 'sales', number> & { link: string }>({
    text: TOP_LINKS,
  });
  const rows = links.map(({ link, clicks, leads, sales }) => [link, figure(clicks), figure(leads), figure(sales)]);
  const top = table(['link', 'clicks', 'leads', 'sales'], rows);
  return `\ntop links by clicks:\n${top}\n\nnext: tributary status; tributary demo --remove removes everything again`;
}
