/**
 * Requests that a first sync makes, divided by the fewest that could carry the rows: `npx tsx bench/extraction-requests.ts`.
 * The sandbox service runs in this process at 1,000 rows a page; nothing is paced, only counted.
 */
import type { Traits } from '../src/sandbox/traits.ts';
import { createSandboxSync, type SandboxSync } from '../test/support/sandbox-sync.ts';

const ROWS = Number(process.env.ROWS ?? 100_000);

/** Five events arrive during every request, one of them half an hour late. */
function busy({ api, service, pass, now }: SandboxSync): void {
  api.onRequest = () => {
    pass(500);
    service.arrive('clicks', 4, { from: now() - 500, to: now() - 1 });
    service.arrive('clicks', 1, { from: now() - 1_800_000, to: now() - 1_800_000 });
  };
}

const cases: { name: string; traits: Traits; live?: (sync: SandboxSync) => void }[] = [
  { name: 'calm', traits: {} },
  { name: 'busy: 5 arrivals a request', traits: {}, live: busy },
  { name: 'widening to days', traits: { widen: 'day' } },
  { name: 'whole seconds, shuffled ties', traits: { timestampForm: 'jsdate', shuffleTies: true } },
  { name: 'widening, whole seconds, shuffled', traits: { widen: 'day', timestampForm: 'jsdate', shuffleTies: true } },
  { name: '10 % of rows hidden', traits: { dropAfterLimit: 0.1 } },
];

for (const { name, traits, live } of cases) {
  const sync = createSandboxSync({ clicks: ROWS, traits });
  live?.(sync);
  const { requests, hasDoubts } = await sync.run();
  const rows = sync.sink.rows.size;
  const ratio = (requests / Math.ceil(rows / 1000)).toFixed(3);
  const outcome = hasDoubts ? 'uncertified parts' : 'certified';
  process.stdout.write(`${[name, rows, requests, ratio, `${sync.missing().length} missing`, outcome].join(' | ')}\n`);
}
