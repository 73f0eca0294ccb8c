import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSandboxService } from '../../test/support/odd-service/service.ts';

/** Numbered clicks, each with the content of a sandbox click. */
const stream = STREAMS.clicks;
const TEMPLATES = 4000;

let templates: Row[] | undefined;

/** @param isChanged A changed version of the same click. */
export function clickAt(n: number, at: number, isChanged = false): Row {
  templates ??= generate(TEMPLATES);
  const template = templates[n % templates.length] as Row;
  const id = `clk_${n.toString(36).padStart(12, '0')}`;
  const values = [...template.values];
  stream.columns.forEach(({ name }, i) => {
    if (name === 'event_id' || name === 'click_id') values[i] = id;
    if (name === 'timestamp' || name === 'click_timestamp') values[i] = at;
    if (name === 'click_city' && isChanged) values[i] = 'Elsewhere';
  });
  return { ...template, id, at, values };
}

function generate(count: number): Row[] {
  const service = createSandboxService({ rows: { clicks: count, leads: 0, sales: 0 } });
  const flatten = createFlatten(stream);
  return service.events('clicks').map((record) => flatten(JSON.parse(JSON.stringify(record))));
}
