import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { checkService } from '../api/check-service.ts';
import { MAX_LIMIT } from '../api/params.ts';
import type { Config } from '../config/index.ts';
import { isInTheClear, isLocalHost } from '../cursor/database/errors.ts';
import { type Database, ifTable } from '../cursor/database/index.ts';
import { readAttested } from '../cursor/holdings/attestations.ts';
import { MIGRATIONS } from '../cursor/migrations/index.ts';
import { checkState } from '../cursor/migrations/migrate.ts';
import { findMoved, MOVED_FIX, movedText, readKnownProfiles } from '../cursor/sources.ts';
import { describeProfile } from '../extract/profile.ts';
import { type Finding, failing, findingOf, note, ok } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import { STREAM_NAMES } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import { UNSETTLED } from '../sinks/sink.ts';
import { stateNameOf, withUntouched } from './index.ts';

interface DoctorDeps {
  config: Config;
  log: Log;
  signal: AbortSignal;
  /** The URL of the state, for a process that has it open. */
  stateUrl?: string;
  /** Called for each finding immediately: a server that does not answer takes a while. */
  onFinding(finding: Finding): void;
}

/** Checks everything a sync needs, each part whatever the result of the others. Changes nothing. */
export async function examine({ config, log, signal, stateUrl, onFinding }: DoctorDeps): Promise<Finding[]> {
  const findings: Finding[] = [];
  const report = (found: readonly Finding[]): void => {
    findings.push(...found);
    found.forEach(onFinding);
  };
  report([checkNode(process.version)]);
  for (const folder of foldersOf(config)) report([await checkDisk(folder)]);
  const untouched = withUntouched({ config, log, stateUrl }, async ({ state, sink }) => {
    const ofState = await checkState(state, MIGRATIONS, stateNameOf(config));
    report(ofState);
    // Every sink keeps its progress in the state: an unreachable database is reported once, not for each sink.
    if (ofState.some(isUnreachable)) return [];
    for (const name of Object.keys(config.sinks))
      report(await findingsOf(`sink ${name}`, checkSink(sink(name), state)));
    report(await profileFindings(state, Object.keys(config.sources)));
    return movedFindings(state, config);
  });
  report(await findingsOf('state', untouched));
  const isStateDown = findings.some((finding) => finding.subject === 'state' && isUnreachable(finding));
  if (config.queue.url !== undefined || !isStateDown) report(await findingsOf('queue', checkQueue(config)));
  report(clearFindings(config));
  for (const [name, { streams, ...source }] of Object.entries(config.sources)) {
    const stream = STREAM_NAMES.find((each) => streams[each]) ?? 'clicks';
    report(await checkService({ name, stream, ...source }, signal));
  }
  return findings;
}

const findingsOf = (subject: string, check: Promise<Finding[]>): Promise<Finding[]> =>
  check.catch((error: unknown) => [findingOf(subject, error)]);

const isUnreachable = ({ level, fixBy }: Finding): boolean => level === 'fault' && fixBy === 'later';

/** Loads the queue's modules only if the config names a Redis or a Postgres server. */
async function checkQueue({ queue: { url }, state }: Config): Promise<Finding[]> {
  if (url === undefined) {
    const stateUrl = state.directUrl ?? state.url;
    if (stateUrl !== undefined) await (await import('../jobs/bull.ts')).checkDirect(stateUrl);
    return [ok('queue', 'in the state database')];
  }
  const { queueFindings, readInfo, redisPlace } = await import('../jobs/redis.ts');
  return queueFindings(redisPlace(url), await readInfo(url));
}

export function clearFindings({ state, sinks, queue }: Config): Finding[] {
  const says = 'is on another machine, and the connection is not encrypted';
  const databases = { state: state.url } as Record<string, string | undefined>;
  for (const [name, sink] of Object.entries(sinks)) if ('url' in sink) databases[`sink ${name}`] = sink.url;
  const redis = queue.url === undefined ? undefined : new URL(queue.url);
  const isPlainQueue = redis?.protocol === 'redis:' && !isLocalHost(redis.hostname);
  return [
    ...Object.entries(databases).flatMap(([subject, url]) =>
      url !== undefined && isInTheClear(url) ? note(subject, says, PLAIN_DATABASE) : [],
    ),
    ...(isPlainQueue ? [note('queue', says, 'use rediss:// in queue.url')] : []),
  ];
}

const PLAIN_DATABASE = 'add ?sslmode=verify-full to its URL (and sslrootcert for a CA of your own)';

/** Local folders that receive data; other machines monitor their own disks. */
function foldersOf({ state, sinks }: Config): string[] {
  const paths = Object.values(sinks).flatMap((sink) =>
    sink.type === 'parquet' ? [sink.path] : sink.type === 'iceberg' ? [sink.warehouse] : [],
  );
  const lakes = paths.filter((path) => !path.startsWith('s3:'));
  return [...(state.url === undefined ? ['.tributary/'] : []), ...lakes];
}

async function checkSink(opening: Promise<Sink>, state: Database): Promise<Finding[]> {
  const sink = await opening;
  const works = (await sink.check?.()) ?? [ok(`sink ${sink.name}`, sink.place)];
  return [...works, ...(await changeFindings(sink, state))];
}

/** Reports changes that others made to a sink since a run last checked it. Counts no rows. */
async function changeFindings(sink: Sink, state: Database): Promise<Finding[]> {
  const subject = `sink ${sink.name}`;
  const known = await readAttested(state, sink.name);
  const findings: Finding[] = [];
  for (const { source, stream, identity, last_commit: last, foreign } of known) {
    const place = `${source}/${stream}`;
    if (foreign !== null) findings.push(failing(subject, `${place}: ${foreign}`, 'tributary verify --repair'));
    const now = await sink.identify?.(state, { source, stream }, last ?? undefined);
    // Before the first sync there was nothing to count.
    if (now === undefined || now === identity || [now, identity].some((one) => one.endsWith(UNSETTLED))) continue;
    const says = `${place}: ${sink.tableOf?.(stream) ?? sink.place} is not the one that was last counted`;
    findings.push(note(subject, says, 'run tributary sync: it counts the rows, and re-reads what is missing'));
  }
  return findings;
}

/** Sources whose name now refers to another service than the one their rows came from. */
async function movedFindings(state: Database, { sources }: Config): Promise<Finding[]> {
  const addresses = Object.entries(sources).map(([name, { baseUrl }]) => ({ name, baseUrl }));
  const moved = await ifTable(state, 'sources', () => findMoved(state, addresses));
  return moved.map((each) => failing(`source ${each.name}`, movedText(each), MOVED_FIX));
}

/** What earlier syncs learned about the services. */
async function profileFindings(state: Database, sources: readonly string[]): Promise<Finding[]> {
  const profiles = await readKnownProfiles(state);
  return profiles
    .filter(({ source }) => sources.includes(source))
    .map((profile) => {
      const habits = describeProfile(profile, MAX_LIMIT);
      const said = habits.length === 0 ? 'keeps start, end, order and page size' : habits.join(', ');
      const says = `${profile.stream}: the service ${said}; ${precisionOf(profile.tickMs)}`;
      if (!profile.ignoresOrder) return ok(`source ${profile.source}`, says);
      // Proofs rely on the order of the rows.
      const fix = 'until it does, rows are stored but not certified: tell the operator of the service';
      return note(`source ${profile.source}`, says, fix);
    });
}

function precisionOf(tickMs: number): string {
  if (tickMs === 1000) return 'its times are whole seconds';
  return tickMs <= 1 ? 'its times have milliseconds' : `its times are whole multiples of ${tickMs} ms`;
}

/** The same as `engines` in package.json. */
const OLDEST_NODE = [20, 19] as const;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const isNew = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isNew) return ok('Node', version);
  return failing('Node', `${version} is too old`, `install Node ${OLDEST_NODE.join('.')} or newer`);
}

const GIB = 2 ** 30;
/** Space for a day of a busy source with its indexes; and the minimum for a database to keep running. */
const LITTLE = 2 * GIB;
const TOO_LITTLE = GIB / 4;

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
  return (free >= TOO_LITTLE ? note : failing)('disk', says, fix);
}
