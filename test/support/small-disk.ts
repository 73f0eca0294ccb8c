import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk of a few kilobytes in memory: it can be full, grow, and be read-only. Only root may mount one. */
export interface SmallDisk {
  folder: string;
  set(options: string): void;
  remove(): void;
}

const mount = (...args: string[]): void => void execFileSync('mount', args, { stdio: 'ignore' });

export function mountSmallDisk(kilobytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'tributary-disk-'));
  try {
    mount('-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'none', folder);
  } catch {
    // Recovery: not root, or a container that may not mount. Whoever asks does without.
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
  return {
    folder,
    set: (options) => mount('-o', `remount,${options}`, folder),
    remove() {
      execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
