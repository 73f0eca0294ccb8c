import { parseArgs } from 'node:util';
import type { Size } from './report.ts';

export interface Options {
  ids: readonly string[];
  size: Size;
  isWritten: boolean;
}

/** `[--only c,d] [--quick] [--write]` */
export function readOptions(args: readonly string[], known: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: { only: { type: 'string' }, quick: { type: 'boolean' }, write: { type: 'boolean' } },
  });
  const { only, quick = false, write = false } = values;
  const ids = only === undefined ? known : only.split(',');
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length > 0) throw new Error(`no section ${unknown.join(', ')}: choose of ${known.join(', ')}`);
  if (quick && write) throw new Error('quick figures are no figures for a document');
  return { ids, size: quick ? 'quick' : 'whole', isWritten: write };
}
