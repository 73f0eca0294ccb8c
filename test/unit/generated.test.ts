import { expect, it } from 'vitest';
import { configJsonSchema } from '../../src/config/schema.ts';
import { toDbt, toMarkdown } from '../../src/sinks/schema-formats.ts';
import { majorPerMinor } from '../../src/sinks/views/money.ts';
import { badInputPage } from '../support/bad-input-page.ts';
import { configurationPage } from '../support/config-reference.ts';
import { errorsPage, errorTexts } from '../support/error-texts.ts';
import { jsonSchema } from '../support/json-documents.ts';

/** Files that are made from code are checked in, and checked: `npm run generate` brings them up to date. */

it('dbt/data-dictionary.md describes the columns as they are', async () => {
  await expect(`${toMarkdown()}\n`).toMatchFileSnapshot('../../dbt/data-dictionary.md');
});

it('dbt/models/staging/sources.yml describes the tables as they are', async () => {
  await expect(`${toDbt('attribution')}\n`).toMatchFileSnapshot('../../dbt/models/staging/sources.yml');
});

it('dbt/macros/major_units.sql knows the currencies of the view', async () => {
  const macro = `{# Generated from the view daily_link_performance: what an amount in minor units is worth in its currency. #}
{% macro major_units(amount, currency) -%}
  ({{ amount }}) * ${majorPerMinor('{{ currency }}')}
{%- endmacro %}
`;
  await expect(macro).toMatchFileSnapshot('../../dbt/macros/major_units.sql');
});

it('config/tributary.schema.json describes the config as it is', async () => {
  await expect(`${JSON.stringify(configJsonSchema(), null, 2)}\n`).toMatchFileSnapshot(
    '../../config/tributary.schema.json',
  );
});

it('test/unit/error-texts.md lists every message', async () => {
  await expect(`${errorsPage(errorTexts())}\n`).toMatchFileSnapshot('error-texts.md');
});

it('test/corpus/outcomes.md lists what becomes of everything in the corpus', async () => {
  await expect(`${badInputPage()}\n`).toMatchFileSnapshot('../corpus/outcomes.md');
});

it('docs/configuration.md holds every key of the config', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../../docs/configuration.md');
});

it('docs/json-schema.json holds the shape of every --json', async () => {
  await expect(`${JSON.stringify(jsonSchema(), null, 2)}\n`).toMatchFileSnapshot('../../docs/json-schema.json');
});
