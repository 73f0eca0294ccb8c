import { dropAliases, dropCanonical } from './data/aliases.ts';
import type { Reading } from './data/shape.ts';
import type { JsonObject, StoredEvent } from './data/types.ts';
import type { World } from './data/world.ts';
import { type Listed, listPage, type Moment, type PageQuery, type RowFacts } from './listing.ts';
import { type ReadTrait, readTrait, type Traits } from './traits.ts';

/** How the service answers, within the contract and outside of it. Users choose the sandbox's traits; tests supply odder behaviours. */
export interface Behaviour<T extends object = Traits> {
  traits: T;
  readonly readTrait: ReadTrait<T>;
  /** Returns the page of events or links for the query, or throws an HttpError. */
  page<R extends Listed>(rows: readonly R[], query: PageQuery, moment: Moment, facts?: RowFacts<R>): R[];
  /** Changes an event that conforms to the contract. Other events of the response share its link. */
  reshape(record: JsonObject, event: StoredEvent, reading: Reading): void;
  reshapeLink?: Reading['reshapeLink'];
  /** Whether an event exists but is never returned. */
  hides?(event: StoredEvent): boolean;
  /** The delay after which new events become visible. */
  latenessMs(): number;
  aheadMs?(): number;
  /** Called at the start and after every change of traits. */
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
