import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { configJsonSchema } from '../../src/config/schema.ts';
import { ENTITIES, entitiesOf, LINKS, STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { HISTORY } from '../../src/sinks/postgres/links.ts';
import { toDbt, toMarkdown } from '../../src/sinks/schema-formats.ts';
import { majorPerMinor } from '../../src/sinks/views/money.ts';
import { jsonSchema } from '../support/json-documents.ts';
import { badInputPage } from './generated/bad-input-page.ts';
import { configurationPage } from './generated/config-reference.ts';
import { errorsPage, errorTexts } from './generated/error-texts.ts';

/** Generated files are checked in and compared here: `npm run generate` updates them. */

it('dbt/data-dictionary.md describes the columns', async () => {
  await expect(`${toMarkdown()}\n`).toMatchFileSnapshot('../../dbt/data-dictionary.md');
});

it('dbt/models/staging/sources.yml describes the tables', async () => {
  await expect(`${toDbt()}\n`).toMatchFileSnapshot('../../dbt/models/staging/sources.yml');
});

it('dbt/macros/major_units.sql has the currencies of the view', async () => {
  const macro = `{# Generated from the view daily_link_performance: what an amount in minor units is worth in its currency. #}
{% macro major_units(amount, currency) -%}
  ({{ amount }}) * ${majorPerMinor('{{ currency }}')}
{%- endmacro %}
`;
  await expect(macro).toMatchFileSnapshot('../../dbt/macros/major_units.sql');
});

it('config/tributary.schema.json describes the config', async () => {
  await expect(`${JSON.stringify(configJsonSchema(), null, 2)}\n`).toMatchFileSnapshot(
    '../../config/tributary.schema.json',
  );
});

it('test/unit/error-texts.md lists every message', async () => {
  await expect(`${errorsPage(errorTexts())}\n`).toMatchFileSnapshot('error-texts.md');
});

it('test/corpus/outcomes.md lists the outcome of every trap of the corpus', async () => {
  await expect(badInputPage()).toMatchFileSnapshot('../corpus/outcomes.md');
});

it('docs/configuration.md has every key of the config', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../../docs/configuration.md');
});

it('docs/warehouse.md shows how the tables join', async () => {
  const page = new URL('../../docs/warehouse.md', import.meta.url);
  const drawn = /(?<=<!-- generated: how the tables are joined -->\n```mermaid\n)[\s\S]*?(?=```\n<!-- end -->)/;
  const text = readFileSync(page, 'utf8');
  expect(text).toMatch(drawn);
  await expect(text.replace(drawn, () => `${erDiagram()}\n`)).toMatchFileSnapshot('../../docs/warehouse.md');
});

function erDiagram(): string {
  const streams = STREAM_NAMES.map((name) => STREAMS[name]);
  const joined = (one: string, many: string, on: string) => `  ${one} |o--o{ ${many} : "_source, ${on}"`;
  return [
    'erDiagram',
    ...ENTITIES.flatMap((entity) =>
      streams
        .filter((stream) => entitiesOf(stream).includes(entity))
        .map(({ name }) => joined(entity.name, name, entity.key)),
    ),
    ...streams.filter(({ name }) => name !== 'clicks').map(({ name }) => joined('clicks', name, 'event_id = click_id')),
    joined(LINKS.name, HISTORY, LINKS.key),
  ].join('\n');
}

it('docs/json-schema.json has the shape of every --json', async () => {
  await expect(`${JSON.stringify(jsonSchema(), null, 2)}\n`).toMatchFileSnapshot('../../docs/json-schema.json');
});
