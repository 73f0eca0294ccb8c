import { withSinks } from '../../../src/app/index.ts';
import { holderOf } from '../../../src/cursor/database/holders.ts';
import { toIso } from '../../../src/model/instant.ts';
import { STREAM_NAMES } from '../../../src/model/streams.ts';
import { DAY_MS, type Window } from '../../../src/model/window.ts';
import type { JsonObject } from '../../../src/sandbox/data/types.ts';
import { forget } from '../../../src/sync/maintain/forget.ts';
import type { Outcome } from '../../../src/sync/sync-stream.ts';
import { backfill, statesOf, sync } from '../../support/engine.ts';
import { silentLog } from '../../support/silent-log.ts';
import { type Judgement, judgeEnd, judgeGone, truthOf } from './checks.ts';
import type { Task } from './child.ts';
import type { World, WorldOptions } from './world.ts';

/** A command that may be killed at any step. */
export interface Command {
  name: string;
  world?: Omit<WorldOptions, 'sites'>;
  /** Windows certified before it are not in the sinks. */
  isUntrue?: boolean;
  /** Creates the situation that the killed process starts from. */
  prepare(world: World): Promise<void>;
  task(world: World): Task;
  /** Runs it again, to its end. */
  again(world: World): Promise<void>;
  judge(world: World): Promise<Judgement>;
}

const MINUTE = 60_000;

async function syncOnce(world: World): Promise<void> {
  world.syncedAt = Date.now();
  expectDone(await sync(world.config));
}

function expectDone(outcomes: readonly Outcome[]): void {
  const states = statesOf(outcomes);
  if (states.some((state) => state !== 'done')) throw new Error(`run again, it ended with: ${states}`);
}

const cli =
  (...words: string[]) =>
  ({ configFile }: World): Task => ({ argv: [...words, '--config', configFile] });

export const firstSync: Command = {
  name: 'a first sync',
  prepare: async () => {},
  task: cli('sync'),
  again: syncOnce,
  judge: judgeEnd,
};

export const veryFirstSync: Command = {
  ...firstSync,
  name: 'a sync with nothing there yet',
  world: { isNew: true },
};

/** Brings new events, late ones, a changed one and one moved to another day; one event is deleted. */
export const laterSync: Command = {
  name: 'a later sync',
  async prepare(world) {
    await syncOnce(world);
    changeService(world);
  },
  task: cli('sync'),
  again: syncOnce,
  judge: judgeEnd,
};

/** The same after an upgrade: the index of events in files is empty, and is filled from the files. */
export const upgradedSync: Command = {
  ...laterSync,
  name: 'a later sync after an upgrade',
  async prepare(world) {
    await laterSync.prepare(world);
    const { db } = world.grounds.state;
    const values = [world.source];
    await db.query({
      text: 'delete from tributary.lake_index where track in (select id from tributary.lake_tracks where source = $1)',
      values,
    });
    await db.query({ text: 'update tributary.lake_tracks set indexed_from = null where source = $1', values });
  },
};

/** The sinks were emptied: the sync reports it and fills them again. */
export const refill: Command = {
  name: 'a sync into emptied sinks',
  async prepare(world) {
    await syncOnce(world);
    for (const site of world.sites) await site.empty?.();
  },
  isUntrue: true,
  task: cli('sync', '--recount'),
  async again(world) {
    world.syncedAt = Date.now();
    expectDone(await sync(world.config, { recount: true }));
  },
  judge: judgeEnd,
};

export const parallelism: Command = {
  ...laterSync,
  name: 'a later sync of three streams',
  world: { streams: STREAM_NAMES },
};

function changeService({ sandbox: { service }, streams, late, vanished }: World): void {
  late.since = Date.now();
  const now = service.now();
  for (const stream of streams) {
    const [oldest] = service.events(stream) as [JsonObject];
    service.remove(stream, idOf(oldest));
    service.add(stream, { ...oldest, timestamp: toIso(Math.floor(now / 1000) * 1000 - 5 * MINUTE) });
    const known = service.events(stream).filter(({ timestamp }) => Date.parse(String(timestamp)) > now - 20 * MINUTE);
    const [changes, goes] = known as [JsonObject, JsonObject];
    service.remove(stream, idOf(changes));
    service.add(stream, { ...changes, ...(stream !== 'clicks' && { eventName: 'another name' }) });
    service.remove(stream, idOf(goes));
    vanished.add(idOf(goes));
    const came = [
      ...service.arrive(stream, 3, { from: now - 18 * MINUTE, to: now - 13 * MINUTE }),
      ...service.arrive(stream, 12, { from: now - 8 * MINUTE, to: now - 1 }),
    ];
    for (const id of came) late.ids.add(id);
  }
}

const idOf = (record: JsonObject): string =>
  String(record.event === 'click' ? (record.click as JsonObject).id : record.eventId);

/** Three days before the start of the syncs. */
export const backfillHistory: Command = {
  name: 'a backfill',
  world: { sinceDays: 1 },
  prepare: syncOnce,
  task(world) {
    const { start, end } = historyOf(world.openedAt);
    return cli('backfill', '--from', toIso(start), '--to', toIso(end))(world);
  },
  async again({ config, openedAt }) {
    expectDone(await backfill(config, { window: historyOf(openedAt) }));
  },
  judge: judgeEnd,
};

/** Ends well after the start of the first sync. */
const historyOf = (now: number): Window => ({ start: now - 6 * DAY_MS, end: now - DAY_MS / 2 });

export const forgetCustomer: Command = {
  name: 'forgetting a customer',
  async prepare(world) {
    await syncOnce(world);
    const [lead] = truthOf(world, 'leads');
    world.forgotten.add(lead?.customer ?? '');
  },
  task: (world) => cli('forget', '--source', world.source, '--customer', [...world.forgotten][0] ?? '', '--yes')(world),
  async again({ config, source, forgotten }) {
    const erasure = { source, kind: 'customer', id: [...forgotten][0] ?? '' } as const;
    await withSinks({ config, log: silentLog }, (app) => forget({ ...app, holder: holderOf('forget') }, erasure));
  },
  judge: judgeEnd,
};

export const forgetSource: Command = {
  name: 'forgetting a source',
  prepare: syncOnce,
  task: (world) => cli('forget', '--source', world.source, '--everything', '--yes')(world),
  async again({ config, source }) {
    const erasure = { source, kind: 'source' } as const;
    await withSinks({ config, log: silentLog }, (app) => forget({ ...app, holder: holderOf('forget') }, erasure));
  },
  judge: judgeGone,
};

/** The files were written before a column was added. */
export const rewriteLake: Command = {
  name: 'rewriting a lake',
  async prepare(world) {
    await syncOnce(world);
    await world.grounds.state.db.query({
      text: `
        insert into tributary.columns (stream, path, name, kind, source, run_id)
        values ('leads', $1, $1, 'text', $2, 'by hand')`,
      values: [`grown_${world.source.replace('-', '_')}`, world.source],
    });
  },
  task: cli('lake', 'rewrite'),
  async again({ config }) {
    await withSinks({ config, log: silentLog }, async ({ sinks }) => {
      for (const sink of sinks) await sink.rewrite?.(['leads']);
    });
  },
  judge: judgeEnd,
};

/** There are small files to join, snapshots replaced days ago, and files that only these refer to. */
export const maintainTables: Command = {
  name: 'maintaining tables',
  async prepare(world) {
    await syncOnce(world);
    changeService(world);
    await syncOnce(world);
    for (const site of world.sites) await site.age?.(2 * DAY_MS);
  },
  task: cli('iceberg', 'maintain'),
  async again({ config }) {
    await withSinks({ config, log: silentLog }, async ({ sinks }) => {
      for (const sink of sinks) await sink.maintain?.();
    });
  },
  judge: judgeEnd,
};
