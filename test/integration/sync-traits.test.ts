import { describe, expect, it } from 'vitest';
import {
  configFor,
  expectComplete,
  forgetProofs,
  missingIn,
  openEngine,
  syncAllDone,
  tallies,
  versionsOf,
  withSmallPages,
} from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** Every trait of the field notes, over real HTTP into real tables: nothing is lost, duplicated or unstable. */

const engine = await forThisFile(openEngine());

const rows = { clicks: 150, leads: 60, sales: 40 };
/** Smaller than a stream, so that every trait occurs across pages. */
const PAGE = 20;

const TRAITS = [
  ['widen=day'],
  ['widen=hour'],
  ['bounds=exclusive'],
  ['bounds=inclusive'],
  ['shuffleTies', 'ties=15'],
  ['ties=60'],
  ['dropAfterLimit=0.1'],
  ['lastPage=repeat'],
  ...['iso', 'seconds', 'offset', 'space', 'epoch', 'epoch-ms', 'jsdate'].map((form) => [`timestampForm=${form}`]),
  ['clickTimeIsEventTime'],
  ['duplicates'],
  ['rewrites'],
  ['volatile'],
  ['unknownFields'],
  ['unknownEnums'],
  ['nulls'],
  ['absentKeys'],
  ['emptyStrings'],
  ['saleShape=flat'],
  ['saleShape=canonical'],
  ['saleShape=no-customer'],
  ['oldAliasesOnly'],
  ['noAliases'],
  ['contradict'],
  ['dirty'],
  ['deletedCustomers'],
  ['clockSkew=5m'],
  ['clockSkew=-5m'],
];

describe.each(TRAITS.map((traits) => [traits.join(' '), traits] as const))('%s', (_name, traits) => {
  it('is complete, and changes nothing when read again', async () => {
    const sandbox = await sandboxWith([...traits], { rows, days: 12 });
    const config = configFor(engine, sandbox);
    await withSmallPages(engine.db, config, PAGE);
    await syncAllDone(config);
    await expectComplete(engine.db, config, sandbox);
    const before = await versionsOf(engine.db, config);
    await forgetProofs(engine.db, config);
    const again = await syncAllDone(config);
    expect(tallies(again)).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(await versionsOf(engine.db, config)).toEqual(before);
    expect(again.map(({ report }) => report?.tally.quarantined)).toEqual([0, 0, 0]);
    expect(await missingIn(engine.db, config)).toBe(0);
  });
});

it('records new columns in the run, once', async () => {
  const own = await openEngine();
  try {
    const config = configFor(own, await sandboxWith(['unknownFields'], { rows, days: 12 }));
    await syncAllDone(config);
    await syncAllDone(config);
    const runs = await own.db.query<{ stream: string; changes: string[] }>({
      text: 'select stream, schema_changes as changes from tributary.runs order by started_at, stream',
    });
    const changes = runs.filter(({ stream }) => stream === 'sales').map((run) => run.changes);
    expect(changes).toEqual([
      [
        'click.asn → click_asn (integer)',
        'click.ua → click_ua (text)',
        'customer.stripeCustomerId → customer_stripe_customer_id (text)',
        'ingestedBy → ingested_by (json)',
        'link.utmId → link_utm_id (text)',
        'sale.taxAmount → sale_tax_amount (integer)',
      ],
      [],
    ]);
  } finally {
    await own.close();
  }
});
