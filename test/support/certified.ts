import { type Certified, prove } from '../../src/extract/proof/certified.ts';
import { Evidence } from '../../src/extract/proof/evidence.ts';
import type { Window } from '../../src/model/window.ts';

/** A `Certified` of the kernel, obtained in the only possible way: by an answer with a row on each side of the window. */
export function certified({ start, end }: Window): Certified {
  const evidence = new Evidence({ settleMs: 0 });
  evidence.admit({
    query: { order: 'asc', start: start - 1, end: end + 1, page: 1, limit: 2 },
    rows: [
      { id: 'before', at: start - 1 },
      { id: 'behind', at: end },
    ],
    count: 2,
    answeredAt: Number.MAX_SAFE_INTEGER,
  });
  const { proven } = prove({ start, end }, evidence);
  if (!proven) throw new Error('the kernel does not certify what one answer shows');
  return proven;
}
