import { Option } from 'commander';
import { byCommand } from '../../app/index.ts';
import { audited } from '../../cursor/audit.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Erasure } from '../../sinks/sink.ts';
import { auditNoteOf, forget, forgetSeen, previewForget, type Touched } from '../../sync/maintain/forget.ts';
import { command, type Options, show } from '../command.ts';
import { withStored } from '../config.ts';
import { confirm, figure, table } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary forget --source main --customer cus_8pQ2
  tributary forget --source main --click clk_77Xa --yes     in a script
  tributary forget --source main --customer cus_8pQ2 --dry-run
  tributary forget --source old-eu --everything     the source: rows and cursors

A forgotten customer's leads and sales stay, without anything that identifies
the person; a forgotten click is deleted. Both stay forgotten: the service still
has them, and later syncs leave them out. It applies to every sink of the
config, also while a sync is running, and cannot be undone: it asks first, and
without a terminal it needs --yes. An id that no event has is refused, since it
may be a typo; --unseen forgets it anyway, in case it appears later. --dry-run
counts the affected rows in every sink and in the state.`;

interface ForgetOptions extends Options {
  source: string;
  customer?: string;
  click?: string;
  everything?: boolean;
  unseen?: boolean;
}

export const registerForget = command('forget', {
  does: 'erase a customer, a click or a whole source, and report what was erased',
  options: [
    new Option('--source <NAME>', 'the source to erase, or to erase from').makeOptionMandatory(),
    ['--customer <ID>', 'a customer, by its id'],
    ['--click <ID>', 'a click, by its id'],
    ['--everything', 'the whole source'],
    ['--unseen', 'accept an id that no event has, and exclude it if it ever appears'],
    ...(['dryRun', 'yes', 'config', 'json'] as const),
  ],
  more: EXAMPLES,
  async run(context, options: ForgetOptions) {
    const { terminal } = context;
    const erasure = erasureOf(options);
    let isStillThere = false;
    const touched = await withStored(context, options, async ({ config, state, sinks }) => {
      isStillThere = erasure.kind === 'source' && erasure.source in config.sources;
      if (options.dryRun) {
        const preview = await previewForget({ state, sinks }, erasure);
        if (!preview && !options.unseen) throw unseen(erasure.kind);
        return preview ?? {};
      }
      const what = erasure.kind === 'source' ? `everything of ${erasure.source}` : `this ${erasure.kind}`;
      await confirm(
        context,
        `Erase ${what} from ${sinks.map(({ place }) => place).join(' and ')}, permanently?`,
        options,
      );
      return audited(state, { ...byCommand(), ...auditNoteOf(erasure) }, async () => {
        const deps = { state, sinks, holder: holderOf('forget') };
        const found = await (options.unseen ? forget : forgetSeen)(deps, erasure);
        if (!found) throw unseen(erasure.kind);
        return found;
      });
    });
    if (options.dryRun)
      return show(context, options, { touched, dryRun: true }, () => describePreview(touched, terminal.columns));
    if (isStillThere) terminal.err(`note: ${erasure.source} is still in the config: the next sync reads it again\n`);
    return show(context, options, { touched }, () => describe(erasure.kind, touched, terminal.columns));
  },
});

function erasureOf({ source, customer, click, everything }: ForgetOptions): Erasure {
  const asked = [customer, click, everything].filter((one) => one !== undefined);
  if (asked.length !== 1) {
    throw new ConfigError('name exactly one thing to forget', {
      next: 'give one of --customer ID, --click ID or --everything',
    });
  }
  if (asked[0] === '') throw new ConfigError('the id is empty', { next: 'give the id as shown in the tables' });
  if (customer !== undefined) return { source, kind: 'customer', id: customer };
  return click === undefined ? { source, kind: 'source' } : { source, kind: 'click', id: click };
}

/** The id is not repeated: the output may end up in a log. */
const unseen = (kind: Erasure['kind']): ConfigError =>
  new ConfigError(`no event of the source has this ${kind}`, {
    kept: 'everything; nothing was changed',
    next: 'check the id, or add --unseen to leave it out if it ever appears',
  });

const tableOf = (touched: Touched, columns: number): string =>
  table(
    ['where', 'rows'],
    Object.entries(touched).map(([place, n]) => [place, figure(n)]),
    columns,
  );

function describePreview(touched: Touched, columns: number): string {
  const counts = Object.keys(touched).length === 0 ? 'no event has it yet' : tableOf(touched, columns);
  return [counts, '', 'nothing was changed', 'next: the same without --dry-run'].join('\n');
}

/** The id is not printed: the output may end up in a log. */
function describe(kind: Erasure['kind'], touched: Touched, columns: number): string {
  const isFound = Object.values(touched).some((n) => n > 0);
  const stays = 'later syncs leave it out';
  const [found, unknown] =
    kind === 'source'
      ? ['the source was removed', 'it had no data']
      : [`the ${kind} is forgotten, and ${stays}`, `no row had this ${kind}; if one appears, ${stays}`];
  return [tableOf(touched, columns), '', isFound ? found : unknown].join('\n');
}
