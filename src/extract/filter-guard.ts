import { checkFiltered, doubtOf } from '../api/check-filtered.ts';
import type { Row } from '../model/flatten.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import type { Slice } from './slice.ts';
import { TOO_YOUNG } from './sweep.ts';
import type { TailEnd } from './tail.ts';

/**
 * What is proven is complete of what was asked for; whether the service asked itself the same question, only its rows show. From the
 * first row on that a filter should have kept out, and as long as no row ever came for a filter, nothing is called complete.
 */
export interface FilterGuard {
  /** Every row that the service shows, wherever it lies. */
  see(rows: readonly Row[]): void;
  doubt(): string | undefined;
  sweep(slices: AsyncGenerator<Slice, void>): AsyncGenerator<Slice, void>;
  tail(slices: AsyncGenerator<Slice, TailEnd>): AsyncGenerator<Slice, TailEnd>;
}

export interface FilterGuardOptions {
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  /** Earlier runs with these filters saw rows: that there are none now says nothing against them. */
  hasShown?: boolean | undefined;
}

export function createFilterGuard({ stream, filters, hasShown = false }: FilterGuardOptions): FilterGuard {
  const isFiltered = Object.keys(filters).length > 0;
  let check = checkFiltered(STREAMS[stream], filters, []);
  const doubt = (): string | undefined => (hasShown && check.rows === 0 ? undefined : doubtOf(check));
  return {
    see(rows) {
      if (isFiltered) check = checkFiltered(STREAMS[stream], filters, rows, check);
    },
    doubt,
    async *sweep(slices) {
      for await (const slice of slices) {
        const note = doubt();
        const isJudged = slice.window && slice.note !== TOO_YOUNG;
        yield isJudged && note ? { ...slice, certified: undefined, whole: false, note } : slice;
      }
    },
    async *tail(slices) {
      const end = yield* slices;
      return doubt() ? { ...end, certified: undefined } : end;
    },
  };
}
