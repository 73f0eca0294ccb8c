import { type Finding, note, ok } from '../model/finding.ts';

/** Below this, the queue's scripts lack commands they use. */
const OLDEST = [6, 2] as const;

/** What a Redis says of itself (INFO, which hosted servers allow where CONFIG is forbidden), judged as a home for jobs. */
export function queueFindings(place: string, info: string): Finding[] {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  return [
    versionFinding(place, field('redis_version') ?? '0'),
    evictionFinding(field('maxmemory_policy')),
    persistenceFinding(field('aof_enabled'), field('rdb_last_bgsave_status')),
  ];
}

function versionFinding(place: string, version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
    return ok('queue', `${place} answers (${version})`);
  return {
    level: 'fault',
    subject: 'queue',
    says: `${place} has version ${version}, which is too old`,
    fix: `upgrade Redis to ${OLDEST.join('.')} or newer, or leave queue out: it then lives in the state database`,
    mend: 'config',
  };
}

function evictionFinding(policy: string | undefined): Finding {
  if (policy === undefined || policy === 'noeviction') return ok('queue', 'keeps its keys when memory is short');
  return {
    level: 'fault',
    subject: 'queue',
    says: `throws keys away when memory is short (maxmemory-policy is ${policy}): jobs would vanish`,
    fix: 'run redis-cli config set maxmemory-policy noeviction, and put the line into redis.conf',
    mend: 'config',
  };
}

/** Jobs are hints, and the state knows what is due: a queue that is lost costs time, not rows. */
function persistenceFinding(aof: string | undefined, rdb: string | undefined): Finding {
  if (aof === '1') return ok('queue', 'writes its jobs to disk (AOF)');
  const says = rdb === 'ok' ? 'keeps its jobs in snapshots only' : 'keeps its jobs in memory only';
  return note(
    'queue',
    `${says}: some are lost in a crash, and given again from the state`,
    'turn on appendonly to lose none',
  );
}
