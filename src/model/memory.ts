import { readFileSync } from 'node:fs';

/** A share of the memory, in bytes, for what is held while it waits for a disk or a network. */
export interface Memory {
  readonly bytes: number;
  /** Does the work once there is room for it. What is larger than everything waits until it is alone. */
  hold<T>(bytes: number, work: () => Promise<T>): Promise<T>;
}

export function createMemory(bytes: number): Memory {
  let free = bytes;
  const waiting: Array<{ bytes: number; admit(): void }> = [];
  /** In order: a large one must not be passed by small ones for ever. */
  const admit = (): void => {
    for (let next = waiting[0]; next && (next.bytes <= free || free === bytes); next = waiting[0]) {
      waiting.shift();
      free -= next.bytes;
      next.admit();
    }
  };
  return {
    bytes,
    async hold(wanted, work) {
      await new Promise<void>((resolve) => {
        waiting.push({ bytes: wanted, admit: resolve });
        admit();
      });
      try {
        return await work();
      } finally {
        free += wanted;
        admit();
      }
    },
  };
}

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

/** One for the process: all sources, streams and sinks share it. */
export const memory: Memory = createMemory(memoryOf(cgroupLimit()));
