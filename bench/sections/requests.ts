import type { Traits } from '../../test/support/odd-service/traits.ts';
import { createSandboxSync, type SandboxSync } from '../../test/support/sandbox-sync.ts';
import { count, type Report, type Section, type Size } from '../support/report.ts';

/** Five events arrive during every request, one of them half an hour late. */
function busy({ api, service, pass, now }: SandboxSync): void {
  api.onRequest = () => {
    pass(500);
    service.arrive('clicks', 4, { from: now() - 500, to: now() - 1 });
    service.arrive('clicks', 1, { from: now() - 1_800_000, to: now() - 1_800_000 });
  };
}

interface Case {
  name: string;
  traits: Traits;
  live?: (sync: SandboxSync) => void;
}

const CALM: Case = { name: 'calm', traits: {} };
const CASES: readonly Case[] = [
  CALM,
  { name: 'busy: 5 arrivals a request', traits: {}, live: busy },
  { name: 'widening to days', traits: { widen: 'day' } },
  { name: 'whole seconds, shuffled ties', traits: { timestampForm: 'jsdate', shuffleTies: true } },
  { name: 'widening, whole seconds, shuffled', traits: { widen: 'day', timestampForm: 'jsdate', shuffleTies: true } },
  { name: '10 % of rows hidden', traits: { dropAfterLimit: 0.1 } },
];

/** (b) Requests that a first sync makes, divided by the fewest that could carry the rows. Nothing is paced, only counted. */
export const requests: Section = { title: 'Requests ÷ ideal', run };

async function run(size: Size): Promise<Report> {
  const clicks = size === 'quick' ? 4000 : 100_000;
  const found: Array<Case & { rows: number; asked: number; ratio: number; left: number; outcome: string }> = [];
  for (const one of CASES) {
    const sync = createSandboxSync({ clicks, traits: one.traits });
    one.live?.(sync);
    const { requests: asked, hasDoubts } = await sync.run();
    const rows = sync.sink.rows.size;
    const outcome = hasDoubts ? 'in part' : 'yes';
    found.push({ ...one, rows, asked, ratio: asked / Math.ceil(rows / 1000), left: sync.missing().length, outcome });
  }
  return {
    tables: [
      {
        head: ['service', 'rows', 'requests', '÷ ideal', 'left for the next poll', 'certified'],
        rows: found.map((one) => [
          ...[one.name, count(one.rows), one.asked, one.ratio.toFixed(3), one.left, one.outcome],
        ]),
      },
    ],
    bars:
      size === 'quick'
        ? []
        : [{ says: 'requests ÷ ideal of a calm service', measured: found[0]?.ratio ?? Number.NaN, most: 1.05 }],
  };
}
