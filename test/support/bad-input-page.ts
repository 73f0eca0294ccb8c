import { ANSWERS } from '../corpus/answer-traps.ts';
import { RECORDS } from '../corpus/record-traps.ts';

/** docs/bad-input.md: what becomes of everything in the corpus, for a reader. */
export function badInputPage(): string {
  const records = Object.entries(RECORDS).map(([trap, { outcome, means }]) => [trap, outcome, means]);
  const answers = Object.entries(ANSWERS).map(([trap, { outcome, means }]) => [trap, OUTCOMES[outcome], means]);
  return [HEAD, RECORDS_HEAD, table(records), ANSWERS_HEAD, table(answers)].join('\n\n');
}

const OUTCOMES: Readonly<Record<(typeof ANSWERS)[string]['outcome'], string>> = {
  stored: 'stored',
  retried: 'window retried',
  waited: 'window retried, later',
  'page made smaller': 'page made smaller',
  stopped: 'stream stopped',
};

const table = (rows: ReadonlyArray<readonly string[]>): string =>
  [
    '| trap | outcome | |',
    '|---|---|---|',
    ...rows.map(([trap, ...rest]) => `| \`${trap}\` | ${rest.join(' | ')} |`),
  ].join('\n');

const HEAD = `# What becomes of bad input

Made from the corpus by \`npm run generate\`. Every line is a file under \`test/corpus/\`, named for its trap; the tests send it over HTTP
through the whole engine into Postgres and Parquet, and hold what they find against this page. \`<<600*x>>\` in a file stands for 600 times x.

- **stored**: as it came, or as the line says. **flagged**: stored too, and the run counts it (\`misfits\`, \`contradictions\`, \`rows_mended\`
  in \`tributary.runs\`); what a column could not hold is in \`_extra\`.
- **quarantined**: kept in \`tributary.quarantine\` with the reason, without what is private; \`tributary quarantine\` shows it.
- **window retried**: asked again, at most six times; then the run ends as incomplete and nothing is lost. **page made smaller**: the same
  rows are asked for in smaller pages; a single row that breaks them all is set aside, and the window says so.
- **stream stopped**: asking again cannot help. The cursor stays; the error says what to do.

Whatever becomes of a record, the rest of its page arrives; and a record whose time is out of line with its neighbours proves nothing about
what lies between.`;

const RECORDS_HEAD = '## Records\n\nOne of two events on a page. Of a quarantined one, the reason is shown.';
const ANSWERS_HEAD =
  '## Answers\n\nIn place of the first page; the next answer is sound. Where the stream stops, no other is asked for.';
