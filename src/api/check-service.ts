import { once } from 'node:events';
import { connect } from 'node:tls';
import { type Finding, findingOf, note, ok } from '../model/errors.ts';
import type { StreamName } from '../model/streams.ts';
import { DAY_MS, HOUR_MS } from '../model/window.ts';
import { type Client, createClient } from './client.ts';

interface ServiceToCheck extends Record<'name' | 'baseUrl' | 'apiKey', string> {
  requestsPerSecond: number;
  /** Any stream that the source syncs. */
  stream: StreamName;
  /** Whether all links are listed too. */
  links?: object | undefined;
}

const PATIENCE_MS = 15_000;
/** Tributary uses the service's clock; a larger difference would confuse people who compare our times with others. */
const MOST_SKEW_MS = 60_000;
const SOON_DAYS = 21;

/** Checks with one cheap request whether the service answers and accepts the key, and what it reports about budget and time. */
export async function checkService(service: ServiceToCheck, signal: AbortSignal): Promise<Finding[]> {
  const subject = `source ${service.name}`;
  const started = Date.now();
  try {
    const { baseUrl, apiKey, stream } = service;
    const timeouts = { headersMs: PATIENCE_MS, idleMs: PATIENCE_MS, totalMs: PATIENCE_MS };
    // Ends an hour ago: the service's clock may be behind, and it may refuse an end in its future.
    const window = { start: started - 2 * HOUR_MS, end: started - HOUR_MS };
    const client = createClient({ baseUrl, apiKey, timeouts });
    const query = { stream, ...window, sortOrder: 'desc', page: 1, limit: 1, filters: {} } as const;
    const page = await client.get(query, signal);
    const { host } = new URL(baseUrl);
    return [
      ok(subject, `${host} answers and takes the key`),
      ...(await tlsFindings(subject, new URL(baseUrl))),
      budgetFinding(subject, service.requestsPerSecond, page.namedLimit),
      clockFinding(subject, page.serverNow, (started + Date.now()) / 2),
      ...(service.links ? [await linksFinding(subject, client, signal)] : []),
    ];
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

/** A key that reads events may not be allowed to list links. */
const linksFinding = (subject: string, client: Client, signal: AbortSignal): Promise<Finding> =>
  client.get({ stream: 'links', page: 1, pageSize: 1 }, signal).then(
    () => ok(subject, 'lists its links'),
    (error: unknown) => findingOf(`${subject}: links`, error),
  );

/** The limit is documented per hour but counts seconds in practice: it is compared, never used for pacing. */
function budgetFinding(subject: string, perSecond: number, limit: string | undefined): Finding {
  if (limit === undefined) return ok(subject, `paced at ${perSecond}/s; the service reports no limit`);
  const both = `paced at ${perSecond}/s; the service reports a limit of ${limit}`;
  if (!(Number(limit) < perSecond)) return ok(subject, both);
  return note(subject, both, 'check plan and requestsPerSecond: if this limit is per second, every burst gets a 429');
}

function clockFinding(subject: string, serverNow: number | undefined, ours: number): Finding {
  if (serverNow === undefined) return note(subject, 'the service sends no Date header: our clock is used instead');
  const skew = Math.round((serverNow - ours) / 1000);
  if (Math.abs(skew) * 1000 <= MOST_SKEW_MS) return ok(subject, 'its clock and ours agree');
  const who = `our clock is ${Math.abs(skew)} s ${skew > 0 ? 'behind' : 'ahead of'} the service's`;
  return note(subject, who, 'synchronize this machine by NTP; until then syncs use the clock of the service');
}

/** The request showed that the certificate is trusted; this checks how long it stays valid. */
async function tlsFindings(subject: string, url: URL): Promise<Finding[]> {
  if (url.protocol !== 'https:') return [];
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const socket = connect({ host, port: Number(url.port || 443), servername: host });
  socket.on('error', () => {});
  const isOpen = await once(socket, 'secureConnect', { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => false);
  const [protocol, until] = isOpen
    ? [socket.getProtocol(), Date.parse(socket.getPeerCertificate().valid_to)]
    : [null, Number.NaN];
  socket.destroy();
  // Recovery: the request succeeded, perhaps through a proxy; there is nothing to warn about.
  if (Number.isNaN(until)) return [];
  const days = Math.floor((until - Date.now()) / DAY_MS);
  const says = `${protocol ?? 'TLS'}, certificate valid for ${days} more days`;
  return [days < SOON_DAYS ? note(subject, says, 'ask the operator of the service to renew it') : ok(subject, says)];
}
