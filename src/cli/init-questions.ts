import { createInterface } from 'node:readline/promises';
import { checkBaseUrl } from '../api/base-url.ts';
import { PLAN_NAMES } from '../api/plans.ts';
import { Cancelled, ConfigError } from '../model/errors.ts';
import { STREAM_NAMES } from '../model/streams.ts';
import type { Terminal } from './terminal/terminal.ts';

/** What `init` was told, by flags or by answers. */
export interface Answers {
  baseUrl?: string;
  plan?: string;
  requestsPerSecond?: string;
  keyVariable?: string;
  databaseVariable?: string;
  streams?: string;
  since?: string;
  lake?: string;
}

interface Question {
  name: keyof Answers;
  asks: string;
  fallback?: string;
  isNeeded?(answers: Answers): boolean;
  /** Why an answer cannot be; asked again. */
  fault?(answer: string): string | undefined;
}

const PLANS: readonly string[] = PLAN_NAMES.filter((plan) => plan !== 'free');

const QUESTIONS: readonly Question[] = [
  {
    name: 'baseUrl',
    asks: 'Where does the service answer? (such as https://api.example.com)',
    fault: (answer) => {
      const checked = checkBaseUrl(answer);
      return 'fault' in checked ? `the address ${checked.fault}` : undefined;
    },
  },
  {
    name: 'plan',
    asks: `Which plan has the workspace? (${PLANS.join(', ')})`,
    fallback: 'business',
    fault: (answer) => (PLANS.includes(answer) ? undefined : `one of ${PLANS.join(', ')}`),
  },
  {
    name: 'requestsPerSecond',
    asks: 'How many requests a second does it grant?',
    isNeeded: ({ plan }) => plan === 'enterprise',
    fault: (answer) => (Number(answer) > 0 ? undefined : 'a number, please'),
  },
  { name: 'keyVariable', asks: 'Which environment variable holds the key?', fallback: 'TRIBUTARY_API_KEY' },
  { name: 'streams', asks: 'Which streams?', fallback: STREAM_NAMES.join(',') },
  { name: 'since', asks: 'Where shall the first sync begin? (a date, 30d, or all)', fallback: '30d' },
  {
    name: 'databaseVariable',
    asks: 'Which variable holds the URL of your Postgres? (unset: embedded)',
    fallback: 'DATABASE_URL',
  },
  { name: 'lake', asks: 'Parquet files too? (a folder or s3://…; empty: none)', fallback: '' },
];

/** Asks for what the flags left open. Where nobody can answer, the flags must say it. */
export async function askFor(given: Answers, { isInteractive, err }: Terminal, signal: AbortSignal): Promise<Answers> {
  const { stdin } = process;
  if (!isInteractive || !stdin.isTTY) {
    throw new ConfigError('there is no terminal to ask on', {
      next: 'give --yes with --base-url and --plan; see tributary init --help',
    });
  }
  const lines = createInterface({ input: stdin, output: process.stderr, terminal: true });
  const answers: Answers = { ...given };
  try {
    for (const question of QUESTIONS) {
      if (answers[question.name] !== undefined || question.isNeeded?.(answers) === false) continue;
      answers[question.name] = await ask(question);
    }
    return answers;
  } finally {
    lines.close();
  }

  async function ask({ asks, fallback, fault }: Question): Promise<string> {
    for (;;) {
      const answer = await answerTo(`${asks}${fallback ? ` [${fallback}]` : ''}\n> `);
      const chosen = answer.trim() || fallback;
      const wrong = chosen === undefined ? 'this one is needed' : fault?.(chosen);
      if (chosen !== undefined && wrong === undefined) return chosen;
      err(`${wrong}\n`);
    }
  }

  /** Ctrl-C and a closed terminal leave, with nothing written. */
  function answerTo(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const leave = (): void => reject(new Cancelled('interrupted', { kept: 'nothing was written' }));
      lines.once('close', leave).once('SIGINT', () => lines.close());
      lines.question(text, { signal }).then(resolve, leave);
    });
  }
}
