import { readFileSync } from 'node:fs';

/** A share of the memory, in bytes, for pages and rows from the request until every sink has them. */
export type Memory = ReturnType<typeof createMemory>;

interface HoldOptions {
  /** The work releases kept memory: it goes before work that needs more. */
  isWayOut?: boolean;
  /** An aborted signal ends the wait; the work then sees that it is aborted. */
  signal?: AbortSignal | undefined;
}

export interface Held {
  /** Undefined if enough is held already; otherwise a promise that resolves when the rest is. */
  grow(bytes: number): Promise<void> | undefined;
}

interface Waiting {
  bytes: number;
  isWayOut: boolean;
  admit(): void;
}

/**
 * Work always ends, because it waits only for its own growth. So the first in the queue is admitted when it fits, or when nothing else
 * works: then waiting would free nothing.
 */
export function createMemory(bytes: number) {
  let free = bytes;
  let working = 0;
  const queue: Waiting[] = [];

  /** In order: small requests must not starve a large one. */
  const admit = (): void => {
    for (let next = queue[0]; next && (next.bytes <= free || working === 0); next = queue[0]) {
      queue.shift();
      free -= next.bytes;
      working += 1;
      next.admit();
    }
  };

  /** Resolves to the bytes taken; 0 if the signal ended the wait. */
  const take = (wanted: number, { isWayOut = false, signal }: HoldOptions): Promise<number> =>
    new Promise((resolve) => {
      const leave = (): void => {
        queue.splice(queue.indexOf(one), 1);
        working += 1;
        resolve(0);
      };
      const one: Waiting = {
        bytes: wanted,
        isWayOut,
        admit() {
          signal?.removeEventListener('abort', leave);
          resolve(wanted);
        },
      };
      const place = isWayOut ? queue.findIndex((other) => !other.isWayOut) : -1;
      queue.splice(place < 0 ? queue.length : place, 0, one);
      signal?.addEventListener('abort', leave, { once: true });
      if (signal?.aborted) leave();
      admit();
    });

  const give = (taken: number): void => {
    free += taken;
    admit();
  };

  return {
    bytes,
    /** Does the work once there is memory for it. */
    async hold<T>(wanted: number, work: (held: Held) => Promise<T>, options: HoldOptions = {}): Promise<T> {
      let taken = await take(wanted, options);
      const held: Held = {
        grow(needed) {
          if (needed <= taken) return undefined;
          working -= 1;
          // Ahead of work that holds nothing yet: work that has begun must end for others to begin.
          const more = take(Math.max(needed, 2 * taken) - taken, { ...options, isWayOut: true });
          return more.then((came) => {
            taken += came;
          });
        },
      };
      try {
        return await work(held);
      } finally {
        working -= 1;
        give(taken);
      }
    },
    /** Counts rows that exist already, without waiting. Returns the function that releases them. */
    keep(rows: number): () => void {
      const kept = rows * WITH_GARBAGE;
      free -= kept;
      return () => give(kept);
    },
    /** Whether work waits: then rows that are buffered for a joint write should be written now. */
    isShort: (): boolean => queue.length > 0,
  };
}

/** The rows, as much garbage as Node leaves uncollected, and the page before that their reader still holds. */
const WITH_GARBAGE = 3;

const MOST = 256 * 1024 * 1024;

/** A quarter of the container's memory, up to a maximum. */
export function memoryOf(limit: number | undefined): number {
  return Math.min(MOST, Math.floor((limit ?? Number.POSITIVE_INFINITY) / 4));
}

/** The limit of our cgroup; undefined without a limit or a cgroup. */
function cgroupLimit(): number | undefined {
  for (const file of ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes']) {
    try {
      const bytes = Number(readFileSync(file, 'utf8'));
      if (Number.isFinite(bytes) && bytes > 0) return bytes;
    } catch {
      // Recovery: another version of cgroups, or another system.
    }
  }
  return undefined;
}

export const processMemory = createMemory(memoryOf(cgroupLimit()));
