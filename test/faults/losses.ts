import type { Config } from '../../src/config/index.ts';
import type { Database } from '../../src/cursor/database/index.ts';
import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import { storedIds } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { rowsOf } from '../support/proof.ts';

export type Losses = Awaited<ReturnType<typeof lossesOf>>;

/** Counts events of the service that a sink lacks, and those that it has more than once. */
export async function lossesOf({ service }: Sandbox, idsOf: (stream: StreamName) => Promise<readonly string[]>) {
  const losses = { lost: 0, doubled: 0 };
  for (const stream of STREAM_NAMES) {
    const { lost, doubled } = rowsOf(service.ids(stream), await idsOf(stream));
    losses.lost += lost;
    losses.doubled += doubled;
  }
  return losses;
}

/** The ids of the source `main` in a database; none if the tables do not exist yet. */
export const idsIn =
  (db: Database) =>
  (stream: StreamName): Promise<string[]> =>
    storedIds(db, { sources: { main: {} } } as unknown as Config, stream).catch(() => []);
