import { describe, expect, test } from 'vitest';
import type { Flatten } from '../../src/model/flatten.ts';
import {
  cutFirst,
  cutNewest,
  failing,
  lastDayBefore,
  lengthOf,
  nothingAhead,
  sampled,
  scanned,
  sharded,
  staleNewestFirst,
  truncated,
  twice,
} from '../support/reviewed-services.ts';
import { DAY, HOUR, MINUTE, NOON } from '../support/sandbox-sync.ts';
import {
  type Answers,
  createWrittenSync,
  flatten,
  plainly,
  spread,
  type WrittenEvent,
  type WrittenSync,
} from '../support/written-service.ts';

/** Services written from the contract alone that the reader once got wrong. Certified windows are complete in all of them. */

const since30 = NOON - 30 * DAY;

async function runs(sync: WrittenSync, times: number, every = 5 * MINUTE): Promise<number> {
  let requests = 0;
  for (let i = 0; i < times; i++) {
    if (i > 0) sync.pass(every);
    requests += (await sync.run()).requests;
    expect(sync.certifiedAndMissing()).toEqual([]);
  }
  return requests;
}

const complete = (sync: WrittenSync): void => {
  expect(sync.missing()).toEqual([]);
  expect(sync.watermark(), sync.notes().join()).toBe(sync.now() - 10 * MINUTE);
};

describe('rows of another stream', () => {
  const leads = spread(300, since30, NOON, 'lead').map((one) => ({ ...one, event: 'lead' }));

  test('an answer of only these stores nothing and certifies nothing', async () => {
    const sync = createWrittenSync({ events: spread(120, since30, NOON), answers: (q) => plainly(q, leads) });
    for (let i = 0; i < 3; i++) {
      const { error } = await sync.run();
      expect(error?.message).toMatch(/event=clicks.*lead/);
      sync.pass(5 * MINUTE);
    }
    expect([sync.sink.rows.size, sync.watermark()]).toEqual([0, undefined]);
  });

  test('one such answer in twenty is retried, and the sync is complete', async () => {
    const events = spread(3000, since30, NOON);
    const sync = createWrittenSync({ events, answers: (q, all) => plainly(q, q.request % 20 === 3 ? leads : all) });
    await runs(sync, 3);
    complete(sync);
    expect([...sync.sink.rows.keys()].filter((id) => id.startsWith('lead'))).toEqual([]);
  });

  test('some of them among the right ones are left out', async () => {
    const events = spread(3000, since30, NOON);
    const mixed: Answers = (q, all) => plainly(q, q.request % 7 === 2 ? [...all, ...leads] : all);
    const sync = createWrittenSync({ events, answers: mixed });
    await runs(sync, 3);
    expect([...sync.sink.rows.keys()].filter((id) => id.startsWith('lead'))).toEqual([]);
  });
});

describe('long ranges are cut silently', () => {
  test.each([30 * DAY, 7 * DAY, 12 * HOUR])(
    'polls a day apart after a silence see the first %i ms of a range',
    async (ms) => {
      const events = spread(400, since30 - 40 * DAY, NOON - 40 * DAY);
      const sync = createWrittenSync({ events, answers: plainly }, { since: NOON - 60 * DAY });
      await runs(sync, 3);
      complete(sync);
      sync.answers(cutFirst(ms));
      for (let day = 0; day < 4; day++) {
        events.push(...spread(5, sync.now() + 5 * HOUR, sync.now() + 15 * HOUR, `day${day}-`));
        sync.pass(DAY);
        await sync.run();
        expect(sync.certifiedAndMissing()).toEqual([]);
      }
    },
  );

  test.each([7 * DAY, 12 * HOUR])('polls six hours apart see the first %i ms of a range', async (ms) => {
    const events = spread(400, since30, NOON - 10 * DAY);
    const sync = createWrittenSync({ events, answers: plainly });
    await runs(sync, 3);
    sync.answers(cutFirst(ms));
    for (let poll = 0; poll < 8; poll++) {
      if (poll % 3 === 1) events.push(...spread(3, sync.now() + HOUR, sync.now() + 2 * HOUR, `poll${poll}-`));
      sync.pass(6 * HOUR);
      await sync.run();
      expect(sync.certifiedAndMissing()).toEqual([]);
    }
  });

  test.each([
    ['newest', 90],
    ['newest', 30],
    ['first', 90],
    ['first', 30],
  ] as const)('the %s %i days, from the beginning, with a silence of 118 days', async (which, days) => {
    const old = spread(500, NOON - 200 * DAY, NOON - 160 * DAY, 'old');
    const events = [...old, ...spread(501, NOON - 42 * DAY, NOON, 'new')];
    const answers = which === 'newest' ? cutNewest(days * DAY) : cutFirst(days * DAY);
    const sync = createWrittenSync({ events, answers }, { since: NOON - 250 * DAY });
    await runs(sync, 3);
  });

  test('wide ranges are sampled', async () => {
    const sync = createWrittenSync({ events: spread(3000, since30, NOON), answers: sampled });
    await runs(sync, 3);
  });

  test('wide ranges are scanned in part', async () => {
    const sync = createWrittenSync({ events: spread(3000, since30, NOON), answers: scanned });
    await runs(sync, 3);
  });
});

test('a start that is too old becomes the last 24 hours', async () => {
  for (const [oldest, since] of [
    [14, 30],
    [3, 30],
    [25, 30],
    [90, 365],
  ] as const) {
    const events = spread(1000, NOON - since * DAY, NOON);
    const sync = createWrittenSync({ events, answers: lastDayBefore(oldest * DAY) }, { since: NOON - since * DAY });
    await runs(sync, 3);
  }
});

test('shards each skip their share of the offset, and bounds are whole days', async () => {
  for (const shards of [2, 3, 4]) {
    const events = spread(4000, NOON - 2 * DAY, NOON);
    await runs(createWrittenSync({ events, answers: sharded(shards) }, { since: NOON - 3 * DAY }), 3);
  }
});

test('a stale replica answers descending queries, a fresh one ascending ones', async () => {
  for (const events of [spread(2000, NOON - 5 * DAY, NOON), spread(300, NOON - 5 * DAY, NOON)]) {
    await runs(createWrittenSync({ events, answers: staleNewestFirst }), 3);
  }
});

test('a crash in the run that first shows rows of a stream certified empty', async () => {
  const events: WrittenEvent[] = [];
  const sync = createWrittenSync(
    { events, answers: plainly },
    { isCrash: (error) => (error as Error).message === 'crash' },
  );
  await runs(sync, 3);
  expect(sync.watermark()).toBeDefined();
  // Old events appear: the service had hidden them, or they were imported.
  events.push(...spread(3000, since30, NOON, 'late'));
  sync.pass(5 * MINUTE);
  let commits = 0;
  sync.sink.onCommit = (moment) => {
    if (moment === 'after' && ++commits === 1) throw new Error('crash');
  };
  await sync.run();
  sync.sink.onCommit = () => {};
  sync.pass(5 * MINUTE);
  await runs(sync, 1);
  complete(sync);
});

describe('every row of an answer is stored, also behind the position of the reader', () => {
  const withoutSecondLast: Answers = (q, events) => {
    const page = plainly(q, events);
    return page.length === q.limit ? page.toSpliced(-2, 1) : page;
  };
  /** After the fourth request, inserts a row between the last two of its page. */
  const besideTheEdge =
    (all: WrittenEvent[]): Answers =>
    (q, events) => {
      const page = plainly(q, events);
      const [a, b] = page.slice(-2);
      if (q.request === 4 && a && b) all.push({ id: 'beside', at: Math.round((a.at + b.at) / 2) });
      return page;
    };
  test.each([
    ['full pages lack their second-to-last row', () => withoutSecondLast],
    ['a row is inserted at the edge of a page', besideTheEdge],
  ] as const)('%s', async (_, answersOf) => {
    for (const [count, end] of [
      [300, NOON],
      [300, NOON - 3 * DAY],
      [1500, NOON],
    ] as const) {
      const events = spread(count, since30, end);
      const shown = new Set<string>();
      const inner = answersOf(events);
      const answers: Answers = (q, all) => {
        const page = inner(q, all);
        for (const { id, at } of page) if (at >= since30) shown.add(id);
        return page;
      };
      const sync = createWrittenSync({ events, answers }, { mostRows: 100 });
      for (let i = 0; i < 2; i++) {
        await sync.run();
        expect([...shown].filter((id) => !sync.sink.rows.has(id))).toEqual([]);
        sync.pass(5 * MINUTE);
      }
    }
  });
});

describe('progress where a client can make it', () => {
  test.each([
    [422, 90 * DAY],
    [422, 31 * DAY],
    [400, 7 * DAY],
    [403, DAY],
    [504, 30 * DAY],
    [502, 3 * DAY],
  ])('ranges are refused with %i above %i ms', async (status, ms) => {
    const since = NOON - 120 * DAY;
    for (const events of [spread(5000, since, NOON), spread(3000, since - 90 * DAY, NOON - HOUR)]) {
      const sync = createWrittenSync({ events, answers: failing(status, (q) => lengthOf(q) > ms) }, { since });
      const requests = await runs(sync, 1);
      complete(sync);
      const pages = Math.ceil(events.length / 1000);
      expect(requests).toBeLessThanOrEqual(30 + 2 * pages + 3 * Math.ceil((120 * DAY) / ms));
      await runs(sync, 2);
    }
  });

  test('ranges are refused, and all rows are older than one: the first sync stores them', async () => {
    const events = spread(3000, NOON - 5 * DAY, NOON - 4 * DAY);
    const sync = createWrittenSync({ events, answers: failing(422, (q) => lengthOf(q) > 3 * DAY) });
    expect(await runs(sync, 1)).toBeLessThanOrEqual(200);
    expect(sync.missing()).toEqual([]);
  });

  test('ranges are refused, and all rows share one instant, a week ago', async () => {
    const events = Array.from({ length: 20 }, (_, i) => ({ id: `e${i}`, at: NOON - 7 * DAY + HOUR }));
    const answers = failing(502, (q) => lengthOf(q) > 14 * DAY);
    const sync = createWrittenSync({ events, answers }, { since: NOON - 7 * DAY });
    expect(await runs(sync, 2)).toBeLessThanOrEqual(30);
    complete(sync);
  });

  test('ranges that time out for a day are as long as before afterwards', async () => {
    const events = spread(3000, since30, NOON);
    const sync = createWrittenSync({ events, answers: failing(504, (q) => lengthOf(q) > DAY) });
    await runs(sync, 1);
    sync.answers(plainly);
    sync.pass(40 * DAY);
    events.push(...spread(20, sync.now() - DAY, sync.now() - HOUR, 'later'));
    expect(await runs(sync, 1)).toBeLessThanOrEqual(12);
    complete(sync);
  });

  test.each([DAY, 3 * DAY])('ranges above %i ms are refused, and rows follow 40 days of silence', async (ms) => {
    const events = spread(3000, since30, NOON);
    const sync = createWrittenSync({ events, answers: failing(422, (q) => lengthOf(q) > ms) });
    await runs(sync, 1);
    sync.pass(40 * DAY);
    events.push(...spread(20, sync.now() - DAY, sync.now() - HOUR, 'later'));
    expect(await runs(sync, 1)).toBeLessThanOrEqual(40 + 6 * Math.ceil((40 * DAY) / ms));
    complete(sync);
  });

  test('ranges are refused, and rows are further apart: all are stored, and what is certified is complete', async () => {
    for (const ms of [DAY, 3 * DAY, 7 * DAY]) {
      const sync = createWrittenSync(
        { events: spread(40, NOON - 120 * DAY, NOON), answers: failing(422, (q) => lengthOf(q) > ms) },
        { since: NOON - 120 * DAY },
      );
      await runs(sync, 4);
    }
  });

  test.each([422, 400])('an end in the future is refused with %i', async (status) => {
    for (const events of [spread(3000, since30, NOON), spread(20, since30, NOON - 2 * DAY), []]) {
      const sync = createWrittenSync({ events, answers: failing(status, (q) => q.end > q.now + 1000) });
      const requests = await runs(sync, 2);
      if (events.length > 0) complete(sync);
      // In a stream without rows, each poll confirms the last.
      else expect(sync.watermark()).toBe(NOON - 10 * MINUTE);
      expect(requests).toBeLessThanOrEqual(50);
    }
  });

  test('an end in the future is refused, and the clock is slow', async () => {
    for (const events of [spread(3000, since30, NOON - HOUR), []]) {
      const sync = createWrittenSync({
        events,
        answers: failing(422, (q) => q.end > q.now),
        clock: -5 * MINUTE,
      });
      const requests = await runs(sync, 3);
      expect(sync.missing()).toEqual([]);
      expect(sync.watermark()).toBe(sync.now() - (events.length > 0 ? 15 : 20) * MINUTE);
      expect(requests).toBeLessThanOrEqual(60);
    }
  });

  test('the age of a page is that of its answer, however long its rows take to process', async () => {
    let rows = 0;
    const slowly: Flatten = (record) => {
      if (++rows % 40 === 0) sync.pass(1);
      return flatten(record);
    };
    const service = { events: spread(3000, since30, NOON - HOUR), answers: plainly, clock: -5 * MINUTE };
    const sync = createWrittenSync(service, { flatten: slowly });
    await sync.run();
    expect(sync.notes()).toEqual([]);
    expect(sync.watermark()).toBe(NOON - 15 * MINUTE);
  });

  test.each<[string, (end: number) => number]>([
    ['shifted back', (end) => end - 5 * HOUR],
    ['whole hours', (end) => Math.floor(end / HOUR) * HOUR],
    ['whole days', (end) => Math.floor(end / DAY) * DAY],
  ])('an end in the future is refused, and ends are %s: no run certifies what they hide', async (_, kept) => {
    // Including one right before a whole day and hour, which an end right after it still shows.
    const events = [...spread(3000, since30, NOON + DAY), { id: 'edge', at: Math.floor(NOON / DAY) * DAY - 400 }];
    const refusing = failing(422, (q) => q.end > q.now + 1000);
    const answers: Answers = (q, all) => refusing(q, all) && plainly({ ...q, end: kept(q.end) }, all);
    const sync = createWrittenSync({ events, answers });
    await runs(sync, 4);
    await runs(sync, 3, 7 * HOUR);
  });

  test.each<[string, (end: number) => number]>([
    ['shifted back', (end) => end - 5 * HOUR],
    ['whole hours', (end) => Math.floor(end / HOUR) * HOUR],
    ['whole days', (end) => Math.floor(end / DAY) * DAY],
  ])(
    'an end in the future is taken for the present, and ends are %s: no run certifies what they hide',
    async (_, kept) => {
      const answers: Answers = (q, all) => plainly({ ...q, end: kept(Math.min(q.end, q.now)) }, all);
      // Silent for half an hour, and active again later.
      const quiet = { from: NOON - HOUR / 2, to: NOON + 8 * HOUR };
      const events = spread(3300, since30, NOON + 3 * DAY).filter(({ at }) => at < quiet.from || at > quiet.to);
      const sync = createWrittenSync({ events, answers });
      await runs(sync, 3, 20 * MINUTE);
      await runs(sync, 3, 7 * HOUR);
      // What is shown is certified.
      expect(sync.watermark()).toBeGreaterThan(sync.now() - 1.7 * DAY);
    },
  );

  test('ends are whole days, and one in the future is not taken for the present: what it shows is certified', async () => {
    const answers: Answers = (q, all) => plainly({ ...q, end: Math.floor(q.end / DAY) * DAY }, all);
    const sync = createWrittenSync({ events: spread(3000, since30, NOON - HOUR), answers });
    await runs(sync, 2);
    complete(sync);
  });

  test.each<[string, number, Answers]>([
    ['from the second poll', 0, (q, all) => plainly({ ...q, end: q.now > NOON ? q.end - 5 * HOUR : q.end }, all)],
    ['slightly ahead of a slow clock', -5 * MINUTE, (q, all) => plainly({ ...q, end: q.end - 5 * HOUR }, all)],
  ])('an end in the future is refused, and ends are shifted back: %s', async (_, clock, answers) => {
    const refusing = failing(422, (q) => q.end > q.now + (clock < 0 ? 2 * HOUR : 0));
    const events = spread(3300, since30, NOON + 3 * DAY);
    const sync = createWrittenSync({ events, answers: (q, all) => refusing(q, all) && answers(q, all), clock });
    await runs(sync, 2, 3 * HOUR);
    await runs(sync, 3);
  });

  test('ranges above two days are refused, and ends are whole days: what they hide is not certified', async () => {
    const refusing = failing(422, (q) => lengthOf(q) > 2 * DAY);
    const answers: Answers = (q, all) => refusing(q, all) && plainly({ ...q, end: Math.floor(q.end / DAY) * DAY }, all);
    await runs(createWrittenSync({ events: spread(3300, since30, NOON + 3 * DAY), answers }), 3);
  });

  test('a refusal with an absurd date does not set the clock', async () => {
    const sync = createWrittenSync({
      events: spread(3000, since30, NOON),
      answers: failing(422, (q) => q.end > q.now),
    });
    sync.refusalsSay(0);
    await runs(sync, 2);
    complete(sync);
  });

  test('an end in the future shows nothing, and the clock is slow', async () => {
    const events = spread(3000, since30, NOON - HOUR);
    const sync = createWrittenSync({ events, answers: nothingAhead, clock: -30 * MINUTE });
    const requests = await runs(sync, 2);
    expect(sync.missing()).toEqual([]);
    expect(sync.watermark()).toBe(sync.now() - 40 * MINUTE);
    expect(requests).toBeLessThanOrEqual(40);
  });

  test('a proxy truncates answers of more than 400 rows', async () => {
    const sync = createWrittenSync({ events: spread(3000, since30, NOON), answers: truncated(400) });
    await runs(sync, 1);
    complete(sync);
  });

  test('a row shown twice on a page counts as one', async () => {
    const events = spread(1, NOON - 3 * DAY, NOON - 2 * DAY);
    const sync = createWrittenSync({ events, answers: twice });
    await runs(sync, 1);
    complete(sync);
  });

  test('an outage in the middle of a run ends it after few requests', async () => {
    const events = spread(6000, since30, NOON);
    for (const from of [2, 5, 8]) {
      const sync = createWrittenSync({ events, answers: (q, all) => (q.request >= from ? [] : plainly(q, all)) });
      const { requests, hasDoubts, error } = await sync.run();
      expect(sync.certifiedAndMissing()).toEqual([]);
      expect(hasDoubts || error !== undefined).toBe(true);
      expect(requests).toBeLessThanOrEqual(60);
    }
  });
});
