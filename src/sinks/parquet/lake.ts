import type { Database } from '../../cursor/database.ts';
import type { Compression } from './format/index.ts';
import type { Scheme } from './partition.ts';
import type { Store } from './store/store.ts';

/** What everything that works on a lake needs to know of it. */
export interface Lake {
  /** The sink's name in the config. */
  name: string;
  store: Store;
  /** Where cursors live, and the index that says which file an event is in. */
  state: Database;
  scheme: Scheme;
  compression: Compression;
}
