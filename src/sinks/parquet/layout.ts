import { MAGIC, type ParquetFile } from './format/index.ts';

/**
 * Where in the next file everything stands. Some readers open a file twice: once to see how long it is and what is in it, and a moment
 * later, by its name, to read that. DuckDB is one, Spark another. For them the next file must be the present one as far as that goes:
 * its groups and its footer stay where they are, also those groups that are replaced, and what is new goes behind it, or where
 * the version before the present one had something. So each file holds two versions: the new one and the one before.
 */
export interface Layout {
  /** What is copied from the present file, each to where it was. */
  readonly kept: readonly Stretch[];
  /** Where so many bytes have room. */
  place(length: number): number;
  /** Behind everything: where the footer goes. */
  end(): number;
}

export interface Stretch {
  start: number;
  end: number;
}

/** Room that is not used may be as large as what is; small files may have more of it. */
const SPARE_BYTES = 4 * 1024 * 1024;

export function createLayout(
  present: { file: ParquetFile; size: number },
  isCopied: (group: number) => boolean,
): Layout {
  const { groups, footerAt } = present.file;
  const used = groups.reduce((sum, { length }, i) => sum + (isCopied(i) ? length : 0), 0);
  const isWasteful = present.size - used > Math.max(SPARE_BYTES, used);
  return isWasteful ? freshLayout() : layoutAround([...groups, { start: footerAt, end: present.size }]);
}

/** Everything anew, without what was replaced: nothing that was erased may stay in a file. */
export const freshLayout = (): Layout => layoutAround([]);

function layoutAround(kept: readonly Stretch[]): Layout {
  const gaps: Stretch[] = [];
  let end = MAGIC.length;
  for (const stretch of [...kept].sort((a, b) => a.start - b.start)) {
    if (stretch.start > end) gaps.push({ start: end, end: stretch.start });
    end = stretch.end;
  }
  return {
    kept: kept.map(({ start, end: last }) => ({ start, end: last })),
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
