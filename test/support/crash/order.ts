import { labelOf } from './choose.ts';

/**
 * A kill leaves everything that was written; a power cut takes what was not forced to the disk. So the order of an undisturbed run is
 * looked at: a file is on disk before it takes its place, and its name is on disk before the state hears of it.
 */
export function faultsOfOrder(steps: readonly string[]): string[] {
  const faults: string[] = [];
  const inMemory = new Set<string>();
  const unnamed = new Set<string>();
  for (const label of steps.map(labelOf)) {
    const [, verb, name = ''] = /^(write|sync|rename) (.+?)(?:\.\*\.tmp)?$/.exec(label) ?? [];
    const isTemp = label.endsWith('.*.tmp');
    const file = name.replace(/^\./, '');
    if (verb === 'write' && isTemp) inMemory.add(file);
    if (verb === 'sync' && isTemp) inMemory.delete(file);
    if (verb === 'rename' && inMemory.has(file)) faults.push(`${file} takes its place before it is on disk`);
    if (verb === 'rename') unnamed.add(file);
    // Of the folder that the file is in, and then of those above it.
    if (verb === 'sync' && !isTemp) unnamed.clear();
    if (label === 'commit: sent' && unnamed.size > 0) {
      faults.push(`the state hears of ${[...unnamed]} before the name is on disk`);
      unnamed.clear();
    }
  }
  return faults;
}
