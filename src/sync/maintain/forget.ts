import type { AuditEntry } from '../../cursor/audit.ts';
import type { Database } from '../../cursor/database/index.ts';
import { instantOf, sql } from '../../cursor/database/sql.ts';
import {
  countSource,
  forgetProgress,
  forgetQuarantined,
  forgetSource,
  mentionedIn,
  readForgotten,
  remember,
  unremember,
} from '../../cursor/forgotten.ts';
import { waitForCommits, withLease } from '../../cursor/leases.ts';
import { createScrub, digestOf } from '../../model/forgotten.ts';
import { STREAM_NAMES, STREAMS } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { abilityOf, type Erasure, type Sink } from '../../sinks/sink.ts';
import type { MaintainDeps } from '../job.ts';

export type Touched = Record<string, number>;

/** The audit trail must not identify the person: a digest proves later that the request was carried out. */
export const auditNoteOf = (erasure: Erasure): Pick<AuditEntry, 'action' | 'target' | 'detail'> => ({
  action: `${erasure.kind}.forget`,
  target: erasure.source,
  ...('id' in erasure && { detail: { digest: digestOf(`${erasure.source} ${erasure.id}`).slice(0, 16) } }),
});

export async function forget({ state, sinks, holder }: MaintainDeps, erasure: Erasure): Promise<Touched> {
  const { source } = erasure;
  // Checked before anything is erased, so that a sink without this ability does not fail halfway.
  const erasers = sinks.map((sink) => abilityOf(sink, 'erase'));
  const eraseInSinks = async (): Promise<Touched> => {
    const touched: Touched = {};
    for (const [i, erase] of erasers.entries()) addTo(touched, sinks[i]?.name, await erase(erasure));
    return touched;
  };
  if (erasure.kind === 'source') {
    // A running sync would continue to write rows of the source, and cursors that count them as complete.
    return withLeases(state, source, holder, async () => {
      for (const sink of sinks) await sink.checkErasure?.(erasure);
      return {
        // Cursors are deleted first: after a crash, erased rows must not count as complete, or no sync would read them again.
        ...(await forgetProgress(state, source)),
        ...(await eraseInSinks()),
        ...(await forgetSource(state, source)),
      };
    });
  }
  // In this order, so that a running sync restores nothing: later commits see the request, and earlier ones are awaited.
  await remember(state, source, erasure.kind, erasure.id);
  await waitForCommits(state, source);
  const touched = await eraseInSinks();
  return {
    ...touched,
    'tributary.quarantine': await forgetQuarantined(state, source, erasure.kind, erasure.id),
  };
}

/** Adds the counts of a sink. If two sinks have tables of the same name, the key gets the name of the sink. */
function addTo(touched: Touched, sink: string | undefined, more: Touched): void {
  for (const [table, rows] of Object.entries(more)) touched[table in touched ? `${sink}: ${table}` : table] = rows;
}

/** Like `forget`, but if no row has the id, returns undefined and does not keep it out in future: it may be mistyped. */
export async function forgetSeen(deps: MaintainDeps, erasure: Erasure): Promise<Touched | undefined> {
  if (!('id' in erasure)) return forget(deps, erasure);
  const { source, kind, id } = erasure;
  const isKnown = await isForgotten(deps.state, erasure);
  const touched = await forget(deps, erasure);
  if (isKnown || Object.values(touched).some((rows) => rows > 0)) return touched;
  await unremember(deps.state, source, kind, id);
  return undefined;
}

const isForgotten = async (state: Database, { source, kind, id }: Extract<Erasure, { id: string }>): Promise<boolean> =>
  (await readForgotten(state, source)).some((one) => one.kind === kind && one.digest === digestOf(id));

/** The number of rows that `forget` would affect, by table. Changes nothing. Undefined if `forgetSeen` would refuse the id. */
export async function previewForget(
  { state, sinks }: Pick<MaintainDeps, 'state' | 'sinks'>,
  erasure: Erasure,
): Promise<Touched | undefined> {
  const { source } = erasure;
  const touched: Touched = {};
  for (const sink of sinks)
    addTo(touched, sink.name, await (sink.countErased?.(erasure) ?? countEvents(state, sink, erasure)));
  if (!('id' in erasure)) return { ...touched, ...(await countSource(state, source)) };
  touched['tributary.quarantine'] = (await mentionedIn(state, source, erasure.kind, erasure.id)).length;
  return (await isForgotten(state, erasure)) || Object.values(touched).some((rows) => rows > 0) ? touched : undefined;
}

/** Counts affected events of a sink by stream, by reading the whole range of the ledger. */
async function countEvents(state: Database, sink: Sink, erasure: Erasure): Promise<Touched> {
  const touched: Touched = {};
  const window = await ledgerRange(state, erasure.source);
  const read = abilityOf(sink, 'read');
  for (const stream of Object.values(STREAMS)) {
    const scrub = createScrub(stream, 'id' in erasure ? [{ kind: erasure.kind, digest: digestOf(erasure.id) }] : []);
    await sink.prepare(stream);
    let events = 0;
    for await (const rows of read(stream, erasure.source, window)) {
      const kept = new Set(scrub(rows));
      events += erasure.kind === 'source' ? rows.length : rows.filter((row) => !kept.has(row)).length;
    }
    touched[`${sink.name}: ${stream.name}`] = events;
  }
  return touched;
}

/** From the start of the first window in the ledger to tomorrow. */
async function ledgerRange(state: Database, source: string): Promise<Window> {
  const [range] = await state.query<Window>(sql`
    select ${instantOf('coalesce(min(start_at), now())')} as start, ${instantOf("now() + interval '1 day'")} as "end"
    from tributary.windows where source = ${source}`);
  if (!range) throw new Error('an aggregate is always one row');
  return range;
}

const withLeases = <T>(state: Database, source: string, holder: string, work: () => Promise<T>): Promise<T> =>
  ([...STREAM_NAMES, 'links'] as const).reduceRight<() => Promise<T>>(
    (inner, stream) => () => withLease(state, source, stream, holder, inner),
    work,
  )();
