import { type SpawnOptions, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../model/errors.ts';

/** How a Postgres program is run so that Postgres accepts it: it refuses to run as root. */
export interface RunAs {
  /** Who owns the data directory; undefined: we do, nothing to hand over. */
  owner: Identity | undefined;
  launch(program: string, args: readonly string[]): Launch;
}

export interface Identity {
  uid: number;
  gid: number;
}

export interface Launch {
  file: string;
  args: string[];
  options: Pick<SpawnOptions, 'uid' | 'gid'>;
}

const asOurselves: RunAs = { owner: undefined, launch: (file, args) => ({ file, args: [...args], options: {} }) };

/**
 * An ordinary user runs the programs as they are. Root runs them as somebody else, and never makes a user for it: the owner
 * of the state folder if that is not root, else `postgres`, else `nobody`. `paths` are the places which that user must reach.
 */
export function chooseRunAs(dir: string, paths: readonly string[]): RunAs {
  if (process.getuid?.() !== 0) return asOurselves;
  const owner = ownerOf(dir) ?? userNamed('postgres') ?? userNamed('nobody') ?? { uid: 65534, gid: 65534 };
  const closed = paths.find((path) => !reachable(path, owner));
  if (closed === undefined) {
    return { owner, launch: (file, args) => ({ file, args: [...args], options: { ...owner } }) };
  }
  return { owner, launch: throughClosedFolders(owner, closed) };
}

/**
 * A clone in /root or in a folder of `mktemp -d` is closed to everyone but root. setpriv changes the user but keeps two
 * rights of root's, to pass through folders and to read files. no_setuid_fixup belongs to it: without it access(2), by which
 * initdb looks for its sibling programs, forgets those rights.
 */
function throughClosedFolders(owner: Identity, closed: string): RunAs['launch'] {
  const rights = '-all,+dac_override,+dac_read_search';
  const prefix = [
    ...[`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups', '--securebits=+no_setuid_fixup'],
    ...[`--inh-caps=${rights}`, `--ambient-caps=${rights}`],
  ];
  const trial = spawnSync('setpriv', [...prefix, 'true'], { encoding: 'utf8' });
  if (trial.status !== 0) {
    throw new ConfigError(`the embedded Postgres must not run as root, and user ${owner.uid} cannot reach ${closed}`, {
      next: 'run tributary as an ordinary user, move the folder to where other users may enter, or set state.url',
      cause: trial.error ?? new Error(`setpriv: ${trial.stderr.trim()}`),
    });
  }
  return (program, args) => ({ file: 'setpriv', args: [...prefix, program, ...args], options: {} });
}

/** By mode bits alone, as root may do anything. An access list may say more; then the start fails and tells of it. */
function reachable(path: string, { uid, gid }: Identity): boolean {
  const stat = statSync(path);
  const bits = stat.uid === uid ? stat.mode >> 6 : stat.gid === gid ? stat.mode >> 3 : stat.mode;
  const needed = stat.isDirectory() ? 0o1 : 0o5;
  return (bits & needed) === needed && (dirname(path) === path || reachable(dirname(path), { uid, gid }));
}

function ownerOf(dir: string): Identity | undefined {
  const { uid, gid } = statSync(dir);
  return uid === 0 ? undefined : { uid, gid };
}

function userNamed(name: string): Identity | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  // macOS writes nobody as -2.
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 };
}
