import { dropAliases, dropCanonical } from './data/aliases.ts';
import type { Reading } from './data/shape.ts';
import type { JsonObject, StoredEvent } from './data/types.ts';
import type { World } from './data/world.ts';
import { type Listed, listPage, type Moment, type PageQuery, type RowFacts } from './listing.ts';
import { type ReadTrait, readTrait, type Traits } from './traits.ts';

/** How the service answers, within the contract and beyond it. Users choose among the sandbox's traits; tests bring a stranger behaviour. */
export interface Behaviour<T extends object = Traits> {
  traits: T;
  readonly readTrait: ReadTrait<T>;
  /** The page of events or links that answers the query; or it throws an HttpError. */
  page<R extends Listed>(rows: readonly R[], query: PageQuery, moment: Moment, facts?: RowFacts<R>): R[];
  /** Changes an event that was made by the contract. Its link is shared with other events of the answer. */
  reshape(record: JsonObject, event: StoredEvent, reading: Reading): void;
  reshapeLink?: Reading['reshapeLink'];
  /** Events that exist and are never shown. */
  hides?(event: StoredEvent): boolean;
  /** How much later than they happen new events become visible. */
  latenessMs(): number;
  aheadMs?(): number;
  /** Called at the start and whenever traits have changed. */
  plant?(world: World, now: number): void;
}

export function createBehaviour(traits: Traits = {}): Behaviour {
  const behaviour: Behaviour = {
    traits,
    readTrait,
    latenessMs: () => behaviour.traits.lateness ?? 0,
    page: (rows, query, moment, facts) => listPage(rows, query, behaviour.traits, moment, facts),
    reshape(record) {
      if (behaviour.traits.oldAliasesOnly) dropCanonical(record);
      if (behaviour.traits.noAliases) dropAliases(record);
    },
  };
  return behaviour;
}
