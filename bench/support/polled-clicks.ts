import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSandboxService } from '../../test/support/odd-service/service.ts';

/** Clicks by number, each with the content of one that the sandbox made. */
const stream = STREAMS.clicks;
const TEMPLATES = 4000;

let templates: Row[] | undefined;

/** @param isChanged The same click, of which the service says something else now. */
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
