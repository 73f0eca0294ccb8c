import { parseArgs } from 'node:util';
import { untilToday } from '../../../src/sandbox/data/world.ts';
import { startSandbox } from './service.ts';
import { parseTraits } from './traits.ts';

/** The odd service in a process of its own, without limits: `main.ts --clicks N --leads N --sales N --days N --trait NAME=VALUE …`. Prints a line of JSON. */
const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: { clicks: text, leads: text, sales: text, days: text, trait: { ...text, multiple: true, default: [] } },
});
const { baseUrl, apiKey } = await startSandbox({
  ...untilToday(1),
  plan: 'enterprise',
  rows: { clicks: Number(values.clicks), leads: Number(values.leads), sales: Number(values.sales) },
  days: Number(values.days),
  traits: parseTraits(values.trait),
});
process.stdout.write(`${JSON.stringify({ baseUrl, apiKey })}\n`);
