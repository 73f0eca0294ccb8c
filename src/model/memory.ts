import { readFileSync } from 'node:fs';

/** A share of the memory, in bytes, for pages and rows from the moment they are asked for until every sink has them. */
export type Memory = ReturnType<typeof createMemory>;

interface HoldOptions {
  /** What it does lets go of what is kept: it goes before work that brings more. */
  isWayOut?: boolean;
  /** An aborted signal ends the wait, and the work finds it aborted. */
  signal?: AbortSignal | undefined;
}

export interface Held {
  /** Undefined where so much is held already; else a wait for the rest. */
  grow(bytes: number): Promise<void> | undefined;
}

interface Waiting {
  bytes: number;
  isWayOut: boolean;
  admit(): void;
}

/**
 * Work ends by itself, as it waits only for its own growth. So the first in the line goes on when it fits, or when nobody works: then nothing
 * would become free by waiting.
 */
export function createMemory(bytes: number) {
  let free = bytes;
  let working = 0;
  const queue: Waiting[] = [];

  /** In order: a large one must not be passed by small ones for ever. */
  const admit = (): void => {
    for (let next = queue[0]; next && (next.bytes <= free || working === 0); next = queue[0]) {
      queue.shift();
      free -= next.bytes;
      working += 1;
      next.admit();
    }
  };

  /** Resolves to what was taken: nothing where the signal ended the wait. */
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
    /** Does the work once there is room for it. */
    async hold<T>(wanted: number, work: (held: Held) => Promise<T>, options: HoldOptions = {}): Promise<T> {
      let taken = await take(wanted, options);
      const held: Held = {
        grow(needed) {
          if (needed <= taken) return undefined;
          working -= 1;
          // Before those who have nothing yet: what is begun must end for others to begin.
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
    /** Counts rows that are there already, and waits for nothing. Returns what lets them go. */
    keep(rows: number): () => void {
      const kept = rows * WITH_GARBAGE;
      free -= kept;
      return () => give(kept);
    },
    /** Somebody waits: what is kept to be written together had better be written now. */
    isShort: (): boolean => queue.length > 0,
  };
}

/** The rows, as much garbage as Node lets lie, and the page before that their reader still holds. */
const WITH_GARBAGE = 3;

const MOST = 256 * 1024 * 1024;

/** A quarter of what the container grants, if it grants less than that is worth. */
export function memoryOf(limit: number | undefined): number {
  return Math.min(MOST, Math.floor((limit ?? Number.POSITIVE_INFINITY) / 4));
}

/** The limit of our cgroup; undefined where there is none, or no cgroup. */
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
