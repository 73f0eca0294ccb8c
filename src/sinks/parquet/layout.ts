import { MAGIC, type StoredGroup } from './format/index.ts';

/**
 * Where in the next file each group stands. Some readers open a file twice: once to see what is in it, and a moment later, by its name,
 * to read that. DuckDB is one. For them the next file must hold, at the same places, everything that the present one speaks of; so
 * groups stay where they are, those that are replaced stay for one more version, and new ones go where neither is.
 */
export interface Layout {
  /** Whether the groups of the present file stay where they are. */
  readonly isKept: boolean;
  /** Where so many bytes have room. */
  place(length: number): number;
  /** Behind everything: where the footer goes. */
  end(): number;
}

/** Room that is not used may be as large as what is; small files may have more, which costs nobody anything. */
const SPARE_BYTES = 4 * 1024 * 1024;

export function createLayout(present: readonly StoredGroup[], isCopied: (group: number) => boolean): Layout {
  const used = present.reduce((sum, { length }, i) => sum + (isCopied(i) ? length : 0), 0);
  const extent = Math.max(MAGIC.length, ...present.map(({ end }) => end));
  const isKept = extent - used <= Math.max(SPARE_BYTES, used);
  return { isKept, ...createSpace(isKept ? present : []) };
}

/** Everything anew, without what was replaced: nothing that was erased may stay in a file. */
export const freshLayout = (): Layout => ({ isKept: false, ...createSpace([]) });

function createSpace(taken: readonly StoredGroup[]): Omit<Layout, 'isKept'> {
  const gaps: Array<{ start: number; end: number }> = [];
  let end = MAGIC.length;
  for (const group of [...taken].sort((a, b) => a.start - b.start)) {
    if (group.start > end) gaps.push({ start: end, end: group.start });
    end = Math.max(end, group.end);
  }
  return {
    place(length) {
      const gap = gaps.find((room) => room.end - room.start >= length);
      if (!gap) {
        end += length;
        return end - length;
      }
      gap.start += length;
      return gap.start - length;
    },
    end: () => end,
  };
}
