import type { Database } from '../cursor/database.ts';
import { forgetQuarantined, forgetSource, remember } from '../cursor/forgotten.ts';
import type { Erasure, Sink } from '../sinks/sink.ts';

/** What was touched, by table or place. */
export type Touched = Record<string, number>;

/**
 * Erases a customer, a click or a whole source from every sink and from the state. What is to stay forgotten is remembered first: a
 * sync that runs at the same time must not bring it back.
 */
export async function forget(state: Database, sinks: readonly Sink[], erasure: Erasure): Promise<Touched> {
  const touched: Touched = {};
  const add = (more: Touched): void => {
    for (const [place, rows] of Object.entries(more)) touched[place] = (touched[place] ?? 0) + rows;
  };
  if (erasure.kind !== 'source') await remember(state, erasure.source, erasure.kind, erasure.id);
  for (const sink of sinks) add(await sink.erase(erasure));
  if (erasure.kind === 'source') add(await forgetSource(state, erasure.source));
  else add({ 'tributary.quarantine': await forgetQuarantined(state, erasure.source, erasure.id) });
  return touched;
}
