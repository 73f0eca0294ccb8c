import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { withApp } from '../../src/app/index.ts';
import { parseConfig } from '../../src/config/index.ts';
import { toIso } from '../../src/model/instant.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

/**
 * Replays the transcript of a day in docs/operations.md: runs every `$` line and compares its output with the page, except for what
 * differs in every run. `npx vitest run test/integration/docs-day.test.ts --update` writes the changes into the page.
 */
const PAGE = '../../docs/operations.md';

/** What differs from run to run, and what depends on its width: line breaks and the distance of columns. */
const MASKS: Readonly<Record<string, [what: RegExp, becomes: string]>> = {
  layout: [/\s+/g, ' '],
  time: [/\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\b\d\d-\d\d \d\d:\d\d/g, 'TIME'],
  date: [/\b\d{4}-\d\d-\d\d\b/g, 'DATE'],
  duration: [/(< )?\b\d+ (s|min|h|days)\b/g, 'DURATION'],
  id: [/\b\d{14}-[0-9a-f]{6}\b|\b\d{8}T\d{6}-[0-9a-f]{8}\b|\bclk_\w+/g, 'ID'],
  // The rows of a day and the requests for them depend on the time of day.
  number: [/~?\b\d[\d,.]*/g, 'NUMBER'],
  bar: [/([█▒─])\1+/g, '$1'],
};
const masked = (text: string): string =>
  Object.values(MASKS).reduce((all, [what, becomes]) => all.replace(what, becomes), text);
const idsIn = (text: string): string[] => text.match(MASKS.id?.[0] ?? '') ?? [];

let place: Place;
let sandbox: Sandbox;

/** Events between two commands: a line that begins with `#`. */
const EVENTS: Readonly<Record<string, () => Promise<void> | void>> = {
  'the plan is renewed at the service': () => {
    sandbox.service.traits = {};
  },
  'somebody deletes a click from the table': async () => {
    const { config } = parseConfig(configText(), 'the day', { TRIBUTARY_API_KEY: sandbox.apiKey });
    const before = process.cwd();
    // The embedded Postgres is found relative to the working directory.
    process.chdir(place.dir);
    await withApp({ config, log: silentLog }, ({ state }) =>
      state.query({
        text: 'delete from attribution.clicks where event_id = (select min(event_id) from attribution.clicks)',
      }),
    ).finally(() => process.chdir(before));
  },
};

const configText = (): string => `
sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: "\${TRIBUTARY_API_KEY}", plan: enterprise, requestsPerSecond: 50, since: 7d } }
sinks: { warehouse: { type: postgres } }
`;

const say = async (line: string): Promise<string> => {
  const [, ...args] = line.split(' ');
  const { text } = await place.call(args, { TRIBUTARY_API_KEY: sandbox.apiKey });
  // Occasional progress lines of long commands.
  return text.replace(/^([█░]{20}|rows: ).*\n/gm, '');
};

/** The night before: the service does not sort the clicks, and refuses the sales. */
beforeAll(async () => {
  const rows = { clicks: 0, leads: 0, sales: 0 };
  [place, sandbox] = await Promise.all([freshPlace(), smallSandbox({ rows, days: 60 })]);
  await mkdir(join(place.dir, 'config'));
  await place.config(configText(), 'config/tributary.yaml');
  const { service } = sandbox;
  // Whole days at any time of day: otherwise the figures of days would differ from run to run.
  const days = (from: number, to: number) => ({ from: dayBefore(from), to: dayBefore(to) - 1 });
  const dayBefore = (number: number): number => startOfDay(Date.now()) - number * DAY_MS;
  service.arrive('clicks', 2400, days(39, 31));
  service.arrive('clicks', 900, days(6, 1));
  service.arrive('leads', 120, days(6, 1));
  service.arrive('sales', 60, days(6, 1));
  const lead = { event: 'lead', eventName: 'Sign up', customer: { id: 'cus_8pQ2', email: 'ada@example.org' } };
  service.add('leads', { ...lead, eventId: 'lead-1', timestamp: toIso(dayBefore(2)) });
  service.add('leads', { ...lead, eventId: 'lead-2' });
  await say('tributary sync leads');
  service.traits = { sortOrder: 'mixed' };
  await say('tributary sync clicks');
  service.traits = { forbidden: 'plan' };
  await say('tributary sync sales');
}, 600_000);

it('the day matches the page', { timeout: 1_200_000 }, async () => {
  const page = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const ids = new Map<string, string>();
  const replay = async (step: string): Promise<string> => {
    const [line = '', ...shown] = step.trimEnd().split('\n');
    const before = shown.join('\n');
    const event = EVENTS[line.slice(2)];
    expect(line.startsWith('$ tributary ') || event, `${line}: neither a command nor an event`).toBeTruthy();
    await event?.();
    if (event) return `${line}\n`;
    const command = [...ids].reduce((text, [theirs, ours]) => text.replace(theirs, ours), line.slice(2));
    const printed = (await say(command)).trimEnd();
    for (const [i, id] of idsIn(before).entries()) ids.set(id, idsIn(printed)[i] ?? id);
    const after = [...ids].reduce((text, [theirs, ours]) => text.replaceAll(ours, theirs), printed);
    return `${line}\n${masked(after) === masked(before) ? before : after}\n`;
  };
  const parts = page.split(/(?<=^```console\n)(.*?)(?=^```$)/gms);
  for (const [i, part] of parts.entries()) {
    if (i % 2 === 0) continue;
    const steps = part.split(/^(?=[$#] )/m);
    parts[i] = '';
    for (const step of steps) parts[i] += await replay(step);
  }
  expect(parts.length).toBeGreaterThan(3);
  await expect(parts.join('')).toMatchFileSnapshot(PAGE);
});
