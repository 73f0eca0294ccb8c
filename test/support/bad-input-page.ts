import { ANSWERS } from '../corpus/answer-traps.ts';
import { RECORDS } from '../corpus/record-traps.ts';
import { wrapped } from './error-texts.ts';

/** What becomes of everything in the corpus, as test/corpus/outcomes.md lists it. */
export function badInputPage(): string {
  const records = Object.entries(RECORDS).map(([trap, { outcome, means }]) => ({ trap, outcome, means }));
  const answers = Object.entries(ANSWERS).map(([trap, { outcome, means }]) => ({
    trap,
    outcome: OUTCOMES[outcome],
    means,
  }));
  return [HEAD, RECORDS_HEAD, listed(records), ANSWERS_HEAD, listed(answers)].join('\n\n');
}

const OUTCOMES: Readonly<Record<(typeof ANSWERS)[string]['outcome'], string>> = {
  stored: 'stored',
  retried: 'window retried',
  waited: 'window retried, later',
  'page made smaller': 'page made smaller',
  stopped: 'stream stopped',
};

/** A paragraph for each outcome: what is made of the traps, then their names. */
function listed(traps: ReadonlyArray<{ trap: string; outcome: string; means: string }>): string {
  const outcomes = new Map<string, Map<string, string[]>>();
  for (const { trap, outcome, means } of traps) {
    const alike = outcomes.get(outcome) ?? new Map<string, string[]>();
    outcomes.set(outcome, alike.set(means, [...(alike.get(means) ?? []), `\`${trap}\``]));
  }
  return [...outcomes]
    .map(([outcome, alike]) => {
      const ends = [...alike].map(([means, names]) => `${means ? `*${means}:* ` : ''}${names.join(', ')}`);
      return wrapped(`- **${outcome}**: ${ends.join(' · ')}`);
    })
    .join('\n');
}

const HEAD = `# Bad input

Generated: \`npm run generate\`.

Each trap is a file under \`test/corpus/\`; the tests send it over HTTP through the whole engine into Postgres and Parquet, and compare what
they find with this list.

- **stored**: as it came, or as the line says. **flagged**: stored too, and counted in \`tributary.runs\`; what a column could not hold is in \`_extra\`.
- **quarantined**: kept in \`tributary.quarantine\` with the reason, without what is private; \`tributary quarantine\` shows it.
- **window retried**: asked again, at most six times; then the run ends as incomplete and nothing is lost. **page made smaller**: the same
  rows are asked for in smaller pages; a single row that breaks them all is set aside, and the window says so.
- **stream stopped**: asking again cannot help. The cursor stays; the error says what to do.`;

const RECORDS_HEAD = '## Records\n\nOne of two events on a page. Of a quarantined one, the reason is shown.';
const ANSWERS_HEAD =
  '## Answers\n\nIn place of the first page; the next answer is sound. Where the stream stops, no other is asked for.';
