import { environment, hasState, withApp } from '../../app/index.ts';
import { type AuditRecord, listAudit } from '../../cursor/audit.ts';
import { type CommonOptions, EXIT, parseCount, type Register, withConfig, withJson } from '../command.ts';
import { type FittedColumn, fittedTable, minute } from '../terminal.ts';

const EXAMPLES = `
Examples:
  tributary audit
  tributary audit --limit 500 --json | jq '.entries[] | select(.actor == "ops")'

Every change that somebody asked for, by a command or in the control room: who,
what and from where, the newest first. Times are UTC.`;

export const registerAudit: Register = (program, action) => {
  const command = program
    .command('audit')
    .description('who changed what: cursors, backfills, records set aside, erasures')
    .option('--limit <N>', 'how many at most', parseCount('--limit'), 20)
    .addHelpText('after', EXAMPLES);
  withJson(withConfig(command)).action(
    action(async ({ terminal, log, document }, { limit, ...options }: CommonOptions & { limit: number }) => {
      const { config } = environment.configOrDefaults(options.config);
      const entries = hasState(config)
        ? await withApp({ config, log }, ({ state }) => listAudit(state, { limit }))
        : [];
      if (options.json) terminal.out(document({ entries }));
      else if (entries.length === 0) terminal.out('nobody has changed anything yet');
      else terminal.out(`${fittedTable(COLUMNS, entries, terminal.columns)}\n\ntimes in UTC`);
      return EXIT.done;
    }),
  );
};

const COLUMNS: ReadonlyArray<FittedColumn<AuditRecord>> = [
  { header: 'when', of: ({ at }) => minute(at) },
  { header: 'who', of: ({ actor }) => actor },
  { header: 'what', of: ({ action }) => action },
  { header: 'of', of: ({ target }) => target ?? '', spare: 2 },
  { header: 'from', of: ({ from }) => from ?? '', spare: 1 },
];
