import { readFileSync } from 'node:fs';
import { ANSWERS } from '../../corpus/answer-traps.ts';
import { RECORDS } from '../../corpus/record-traps.ts';
import { wrapped } from './error-texts.ts';

/** The outcomes in test/corpus/outcomes.md; the prose of the page stays. */
export function badInputPage(): string {
  const records = Object.entries(RECORDS).map(([trap, { outcome, means }]) => ({ trap, outcome, means }));
  const answers = Object.entries(ANSWERS).map(([trap, { outcome, means }]) => ({
    trap,
    outcome: OUTCOMES[outcome],
    means,
  }));
  return readFileSync('test/corpus/outcomes.md', 'utf8')
    .replace(/(?<=^## Records\n\n.+\n\n)[\s\S]*?(?=\n\n## )/m, () => listed(records))
    .replace(/(?<=^## Answers\n\n.+\n\n)[\s\S]*/m, () => `${listed(answers)}\n`);
}

const OUTCOMES: Readonly<Record<(typeof ANSWERS)[string]['outcome'], string>> = {
  stored: 'stored',
  retried: 'window retried',
  waited: 'window retried, later',
  'page made smaller': 'page made smaller',
  stopped: 'stream stopped',
};

/** A paragraph for each outcome, with the names of its traps. */
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
