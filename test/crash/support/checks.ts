import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { instantOf } from '../../../src/cursor/database/sql.ts';
import { toIso } from '../../../src/model/instant.ts';
import type { StreamName } from '../../../src/model/streams.ts';
import { completeThrough } from '../../../src/model/window.ts';
import type { Found, Site } from './sites.ts';
import type { World } from './world.ts';

/** The results of the checks after a kill, or after the second run. Each fault is a sentence. */
export interface Judgement {
  faults: string[];
  lost: number;
  doubled: number;
}

interface Certified {
  start: number;
  end: number;
  proven: number;
}

/** Younger windows are never certified. */
const SETTLE_MS = 10 * 60_000;

/** The service's events, as a reader of a sink should find them. */
export function truthOf({ sandbox }: World, stream: StreamName): Found[] {
  return sandbox.service.events(stream).map((record) => {
    const { eventId, eventName, timestamp, customer, click } = record as unknown as Shown;
    const id = stream === 'clicks' ? click.id : eventId;
    const at = Date.parse(timestamp);
    return { id, at, name: eventName ?? null, customer: customer?.id ?? null };
  });
}

interface Shown {
  eventId: string;
  eventName?: string;
  timestamp: string;
  customer?: { id: string };
  click: { id: string };
}

/** After the kill: certified windows, in the ledger and as shown beside the data, are in the sinks. */
export async function judgeKilled(world: World): Promise<string[]> {
  const faults: string[] = [];
  for (const site of world.sites) {
    for (const stream of world.streams) {
      const where = `${site.name}/${stream}`;
      // In this order: what was sent before the kill may still be reaching both.
      const certified = await certifiedIn(world, site, stream);
      await site.look?.();
      const windows = [...certified, ...(await shownIn(world, site, stream))];
      const there = new Set((await site.events(stream)).map(({ id }) => id));
      const isDue = ({ id, at }: Found, { start, end, proven }: Certified): boolean =>
        at >= start && at < end && (proven > world.late.since || !world.late.ids.has(id));
      const missing = truthOf(world, stream).filter(
        (event) => !there.has(event.id) && windows.some((window) => isDue(event, window)),
      );
      if (missing.length > 0) faults.push(`${where}: ${missing.length} events are called complete and are not there`);
    }
  }
  return faults;
}

/** After the second run: the service's events are there in their present version, each once, and nothing else is. */
export async function judgeEnd(world: World): Promise<Judgement> {
  const judgement: Judgement = { faults: [], lost: 0, doubled: 0 };
  for (const site of world.sites) {
    await site.look?.();
    for (const stream of world.streams) {
      await judgeEvents(world, site, stream, judgement);
      await judgeWatermark(world, site, stream, judgement);
    }
    await judgeCustomers(world, site, judgement);
    for (const left of await site.leftovers()) judgement.faults.push(`${site.name}: ${left} was left behind`);
  }
  const running = await world.grounds.state.db.query<{ stream: string }>({
    text: `select stream from tributary.runs where source = $1 and (state = 'running' or finished_at is null)`,
    values: [world.source],
  });
  for (const { stream } of running) judgement.faults.push(`a run of ${stream} is called running, and none is`);
  for (const file of await scratchOf(world)) judgement.faults.push(`${file} was left on the local disk`);
  const held = await world.grounds.state.db.query<{ stream: string }>({
    text: 'select stream from tributary.leases where source = $1 and expires_at > clock_timestamp()',
    values: [world.source],
  });
  for (const { stream } of held) judgement.faults.push(`${stream} is held, and nobody is at work`);
  return judgement;
}

/** After a source was forgotten: nothing of it remains. */
export async function judgeGone(world: World): Promise<Judgement> {
  const faults: string[] = [];
  for (const site of world.sites) {
    await site.look?.();
    for (const stream of world.streams) {
      if ((await site.events(stream)).length > 0) faults.push(`${site.name}/${stream}: rows are still there`);
      if ((await site.shown(stream)) !== undefined) faults.push(`${site.name}/${stream}: is still shown as covered`);
      if (await cursorOf(world, site, stream)) faults.push(`${site.name}/${stream}: still has a cursor`);
      if ((await certifiedIn(world, site, stream)).length > 0) faults.push(`${site.name}/${stream}: still has windows`);
    }
    for (const left of await site.leftovers()) faults.push(`${site.name}: ${left} was left behind`);
  }
  return { faults, lost: 0, doubled: 0 };
}

async function judgeEvents(world: World, site: Site, stream: StreamName, judgement: Judgement): Promise<void> {
  const where = `${site.name}/${stream}`;
  const found = await site.events(stream);
  const there = new Map(found.map((event) => [event.id, event]));
  const truth = new Map(truthOf(world, stream).map((event) => [event.id, event]));
  const lost = [...truth.keys()].filter((id) => !there.has(id));
  const invented = [...there.keys()].filter((id) => !truth.has(id) && !world.vanished.has(id));
  const other = [...truth.values()].filter((event) => {
    const mine = there.get(event.id);
    const customer = world.forgotten.has(event.customer ?? '') ? null : event.customer;
    return mine && (mine.at !== event.at || mine.name !== event.name || mine.customer !== customer);
  });
  const doubled = found.length - there.size;
  judgement.lost += lost.length;
  judgement.doubled += doubled;
  if (lost.length > 0) judgement.faults.push(`${where}: ${lost.length} events are missing: ${lost.slice(0, 3)}`);
  if (doubled > 0) judgement.faults.push(`${where}: ${doubled} events are there twice`);
  if (invented.length > 0) judgement.faults.push(`${where}: nobody knows of ${invented.slice(0, 3)}`);
  if (other.length > 0) {
    const [first] = other as [Found];
    const [is, ought] = [there.get(first.id), first].map((event) => JSON.stringify(event));
    judgement.faults.push(`${where}: ${other.length} events have another content: ${is}, not ${ought}`);
  }
}

/** The watermark is the end of the unbroken certified time, as far as the last run could prove, and shown beside the data. */
async function judgeWatermark(world: World, site: Site, stream: StreamName, { faults }: Judgement): Promise<void> {
  const where = `${site.name}/${stream}`;
  const cursor = await cursorOf(world, site, stream);
  if (!cursor?.through) return void faults.push(`${where}: has no watermark`);
  const windows = (await certifiedIn(world, site, stream)).sort((a, b) => a.start - b.start);
  const proven = completeThrough(windows, cursor.since);
  if (proven !== cursor.through) faults.push(`${where}: the watermark is not the end of what is certified`);
  // The service's clock shows whole seconds.
  const reachable = Math.floor(world.syncedAt / 1000) * 1000 - SETTLE_MS;
  if (cursor.through < reachable) {
    faults.push(`${where}: complete through ${toIso(cursor.through)}, not ${toIso(reachable)}`);
  }
  if (windows.some(({ start }, i) => start < (windows[i - 1]?.end ?? 0))) faults.push(`${where}: windows overlap`);
  const behind = cursor.through - ((await site.shown(stream)) ?? 0);
  if (behind < 0 || behind > (site.shownBehindMs ?? 0))
    faults.push(`${where}: another watermark is shown beside the data`);
}

async function judgeCustomers(world: World, site: Site, { faults }: Judgement): Promise<void> {
  const stored = await site.customers?.();
  if (!stored) return;
  const of = world.streams.flatMap((stream) => truthOf(world, stream).map(({ customer }) => customer));
  const missing = [...new Set(of)].filter((id) => id && !world.forgotten.has(id) && !stored.includes(id));
  if (missing.length > 0) faults.push(`${site.name}: ${missing.length} customers are missing`);
  if (new Set(stored).size < stored.length) faults.push(`${site.name}: a customer is there twice`);
  if (stored.some((id) => world.forgotten.has(id))) faults.push(`${site.name}: a forgotten customer is there`);
}

/** Temporary files for a bucket are on the local disk, named after the process. */
async function scratchOf({ source, killed }: World): Promise<string[]> {
  const all = await readdir(join(tmpdir(), `tributary-lake-${process.getuid?.() ?? 'user'}`)).catch(() => []);
  return all.filter((name) => name.startsWith(`.${source}.parquet.${killed}@`));
}

async function certifiedIn(
  { grounds: { state }, source }: World,
  site: Site,
  stream: StreamName,
): Promise<Certified[]> {
  // A process killed early may have left a state without tables.
  const [found] = await state.db.query<{ there: string | null }>({
    text: `select to_regclass('tributary.windows')::text as there`,
  });
  if (!found?.there) return [];
  return state.db.query<Certified & Record<string, unknown>>({
    text: `
      select ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", ${instantOf('proven_at')} as proven
      from tributary.windows where source = $1 and stream = $2 and sink = $3 and state = 'certified'`,
    values: [source, stream, site.name],
  });
}

/** What is shown may be a run behind, so this checks it against what that run could know. */
async function shownIn(world: World, site: Site, stream: StreamName): Promise<Certified[]> {
  const shown = await site.shown(stream);
  return shown === undefined ? [] : [{ start: world.since, end: shown, proven: 0 }];
}

async function cursorOf({ grounds, source }: World, site: Site, stream: StreamName) {
  const [row] = await grounds.state.db.query<{ since: number; through: number | null }>({
    text: `
      select ${instantOf('since')} as since, ${instantOf('complete_through')} as through
      from tributary.cursors where source = $1 and stream = $2 and sink = $3`,
    values: [source, stream, site.name],
  });
  return row;
}
