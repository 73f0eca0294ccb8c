import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type Finding, note, ok } from '../model/finding.ts';

/** What the package needs; `engines` of package.json says the same. */
const OLDEST_NODE = [20, 19] as const;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const isNew = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isNew) return ok('Node', version);
  const fix = `install Node ${OLDEST_NODE.join('.')} or newer`;
  return { level: 'fault', subject: 'Node', says: `${version} is too old`, fix, mend: 'config' };
}

const GIB = 2 ** 30;
/** A day of a busy source, with its indexes; and what a database needs to go on at all. */
const LITTLE = 2 * GIB;
const TOO_LITTLE = GIB / 4;

/** The free space where a folder is, or will be made. */
export async function checkDisk(folder: string): Promise<Finding> {
  let there = resolve(folder);
  while (!existsSync(there)) there = dirname(there);
  const { bavail, bsize } = await statfs(there);
  return diskFinding(folder, bavail * bsize);
}

export function diskFinding(folder: string, free: number): Finding {
  const says = `${(free / GIB).toFixed(1)} GiB free for ${folder}`;
  if (free >= LITTLE) return ok('disk', says);
  const fix = 'make room, or move the data to a larger disk';
  if (free >= TOO_LITTLE) return note('disk', says, fix);
  return { level: 'fault', subject: 'disk', says, fix, mend: 'config' };
}
