import { constants, existsSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Option } from 'commander';
import { checkBaseUrl } from '../../api/base-url.ts';
import { checkService } from '../../api/check-service.ts';
import { PLAN_NAMES } from '../../api/plans.ts';
import { variables } from '../../app/environment.ts';
import { DEFAULT_CONFIG, parseConfig } from '../../config/index.ts';
import { type Choices, configTemplate } from '../../config/print.ts';
import { sinceFault } from '../../config/schema.ts';
import { isDuration } from '../../config/values.ts';
import { ConfigError, RetryLater, StopStream } from '../../model/errors.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import { lakePathFault } from '../../sinks/parquet/lake.ts';
import { INDEXES } from '../../sinks/views/postgres-indexes.ts';
import { type Context, command, type ExitCode, type Options, parseStreams, show } from '../command.ts';
import { canAsk, createPrompt, type Terminal, wrap } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary init                     prompts for the values
  tributary init --yes --base-url https://api.example.com --plan business
  tributary init --yes --base-url https://api.example.com --plan advanced \\
      --streams leads,sales --since 2026-01-01 --lake ./data/lake

The key itself is never written: the config names the environment variable that
holds it. If it is set, one request tests it, and a config that would not work
is not written. An existing file is never overwritten.`;

type InitOptions = Answers & Options & { untested?: boolean };

const PLANS: readonly string[] = PLAN_NAMES.filter((plan) => plan !== 'free');

export const registerInit = command('init', {
  does: 'write a config by answering a few questions, and test it',
  options: [
    ['--base-url <URL>', "the service's base URL"],
    new Option(
      '--plan <NAME>',
      'the plan of the workspace; the service requires business or higher and may refuse pro (403)',
    ).choices(PLANS),
    ['--requests-per-second <N>', "required for enterprise; also to stay below the plan's rate"],
    ['--key-variable <NAME>', 'variable that holds the key (default: TRIBUTARY_API_KEY)'],
    ['--database-variable <NAME>', 'variable that holds the URL (default: DATABASE_URL)'],
    ['--streams <NAMES>', 'separated by commas: clicks,leads,sales (default: all)'],
    ['--links <DURATION>', 'how often to list all links, such as 1d (default: never)'],
    ['--since <DATE>', 'where the first sync begins (default: 30d)'],
    ['--indexes <NAMES>', `additional indexes, separated by commas: ${INDEXES.join(',')} (default: none)`],
    ['--lake <PATH>', 'also Parquet files: a folder, or s3://bucket/prefix'],
    ['--yes', 'do not prompt: use defaults for missing values'],
    ['--untested', 'do not test the connection to the service'],
    ...(['config', 'json'] as const),
  ],
  more: EXAMPLES,
  run: init,
});

async function init(context: Context, options: InitOptions): Promise<ExitCode> {
  const { terminal, signal } = context;
  const file = options.config ?? DEFAULT_CONFIG;
  // Checked first, so that nobody answers eight questions in vain.
  if (existsSync(file)) throw alreadyExists(file);
  checkFlags(options);
  const answers = options.yes ? options : await askFor(options, terminal, signal);
  const choices = choicesOf(answers);
  const text = configTemplate(choices);
  const known = variables();
  const key = known[choices.keyVariable] || undefined;
  // Not copied: that would read the file of every `*_FILE` variable, most of which are not ours.
  if (!key) Object.defineProperty(known, choices.keyVariable, { value: 'not set yet' });
  // The config is checked before it is written.
  const { config } = parseConfig(text, file, known);
  const main = config.sources.main;
  if (!main) throw new Error('the template has a source main');
  const isTested = key !== undefined && !options.untested;
  const service = { ...main, name: 'main', stream: choices.streams[0] ?? ('clicks' as const) };
  if (isTested) await tryService(service, signal, commandOf(answers, options.config));
  await write(file, text);
  const untested = key === undefined ? `not tested: ${choices.keyVariable} is not set` : 'not tested (--untested)';
  const tested = isTested ? `tested: ${new URL(main.baseUrl).host} answers and takes the key` : untested;
  const next = `${key === undefined ? `set ${choices.keyVariable}, then ` : ''}tributary doctor, and tributary sync${options.config ? ` --config ${file}` : ''}`;
  return show(context, options, { file, tested: isTested }, () => `${file} was written\n${tested}\nnext: ${next}`);
}

function choicesOf(answers: Answers): Choices {
  const { baseUrl, plan, requestsPerSecond, since = '30d', lake } = answers;
  if (!baseUrl || !plan) {
    const missing = [...(baseUrl ? [] : ['--base-url']), ...(plan ? [] : ['--plan'])].join(' and ');
    throw new ConfigError(`${missing} must be given`, { next: 'see tributary init --help' });
  }
  return {
    baseUrl,
    plan,
    since,
    requestsPerSecond: requestsPerSecond || undefined,
    keyVariable: answers.keyVariable ?? 'TRIBUTARY_API_KEY',
    databaseVariable: answers.databaseVariable ?? 'DATABASE_URL',
    streams: answers.streams === undefined ? STREAM_NAMES : parseStreams(namesIn(answers.streams)),
    links: answers.links || undefined,
    indexes: namesIn(answers.indexes ?? ''),
    lake: lake || undefined,
  };
}

async function tryService(
  service: Parameters<typeof checkService>[0],
  signal: AbortSignal,
  command: string,
): Promise<void> {
  const fault = (await checkService(service, signal)).find(({ level }) => level === 'fault');
  if (!fault) return;
  const details = {
    kept: 'nothing was written',
    next: `${fault.fix}; to try again with your answers: ${command}; --untested writes the config anyway`,
  };
  if (fault.fixBy === 'later') throw new RetryLater(fault.says, details);
  throw new StopStream(fault.says, details);
}

/** The command with every answer as a flag, so that nobody has to type them again. They hold names of variables, no secrets. */
function commandOf(answers: Answers, config: string | undefined): string {
  const flags = QUESTIONS.flatMap(({ name }) => {
    const answer = answers[name];
    return answer === undefined || answer === '' ? [] : [flagOf(name), quoted(answer)];
  });
  return ['tributary init --yes', ...flags, ...(config === undefined ? [] : ['--config', quoted(config)])].join(' ');
}

const quoted = (text: string): string => (/^[\w./:,@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const SCHEMA = fileURLToPath(new URL('../../../config/tributary.schema.json', import.meta.url));

async function write(file: string, text: string): Promise<void> {
  const folder = dirname(file);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(file, text, { flag: 'wx' });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') throw alreadyExists(file);
    throw new ConfigError(`${file} cannot be written (${code ?? error})`, {
      next: 'choose another place with --config FILE',
    });
  }
  // Recovery: an existing schema stays; it only serves editors.
  await copyFile(SCHEMA, join(folder, 'tributary.schema.json'), constants.COPYFILE_EXCL).catch(() => {});
}

const alreadyExists = (file: string): ConfigError =>
  new ConfigError(`${file} already exists`, {
    kept: 'it was not changed',
    next: 'edit it, or write another one in a different folder or with --config FILE',
  });

export type Answers = Partial<Record<keyof Choices, string>>;

interface Question {
  name: keyof Answers;
  asks: string;
  fallback?: string;
  isNeeded?(answers: Answers): boolean;
  /** Why an answer is not valid; the question is repeated. */
  fault?(answer: string): string | undefined;
}

const flagOf = (name: keyof Answers): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Reports faults by flag, because the config with its lines does not exist yet. */
function checkFlags(given: Answers): void {
  const faults = QUESTIONS.flatMap(({ name, fault }) => {
    const wrong = given[name] === undefined ? undefined : fault?.(given[name]);
    return wrong === undefined ? [] : [`${flagOf(name)} ${wrong}`];
  });
  if (faults.length > 0) throw new ConfigError('these are not valid:', { faults, next: 'see tributary init --help' });
}

const someOf =
  (names: readonly string[]) =>
  (answer: string): string | undefined => {
    const unknown = namesIn(answer).filter((name) => !names.includes(name));
    return unknown.length > 0 ? `has no ${unknown.join(', ')}: use ${names.join(', ')}` : undefined;
  };

const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** An answer that is not a variable name may be the secret itself: the message does not repeat it. */
function variableFault(answer: string): string | undefined {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(answer)) return undefined;
  return 'takes the name of an environment variable, such as TRIBUTARY_API_KEY, not its value';
}

const everyFault = (answer: string): string | undefined =>
  answer === '' || isDuration(answer) ? undefined : 'must be a duration, such as 1d or 6h';

const lakeFault = (answer: string): string | undefined => (answer === '' ? undefined : lakePathFault(answer));

const QUESTIONS: readonly Question[] = [
  {
    name: 'baseUrl',
    asks: 'What is the base URL of the service? (such as https://api.example.com)',
    fault: (answer) => {
      const checked = checkBaseUrl(answer);
      return 'fault' in checked ? checked.fault : undefined;
    },
  },
  {
    name: 'plan',
    asks: `Which plan is the workspace on? (${PLANS.join(', ')}; the service requires business or higher and may refuse pro)`,
    fallback: 'business',
    fault: (answer) => (PLANS.includes(answer) ? undefined : `must be one of ${PLANS.join(', ')}`),
  },
  {
    name: 'requestsPerSecond',
    asks: 'How many requests a second does it grant?',
    isNeeded: ({ plan }) => plan === 'enterprise',
    fault: (answer) => (Number(answer) > 0 ? undefined : 'must be a number above 0'),
  },
  {
    name: 'keyVariable',
    asks: 'Which environment variable holds the key?',
    fallback: 'TRIBUTARY_API_KEY',
    fault: variableFault,
  },
  { name: 'streams', asks: 'Which streams?', fallback: STREAM_NAMES.join(','), fault: someOf(STREAM_NAMES) },
  {
    name: 'links',
    asks: 'How often should all links be listed? (such as 1d; empty: only clicked links are known)',
    fallback: '',
    fault: everyFault,
  },
  {
    name: 'since',
    asks: 'Where does the first sync begin? (2026-01-01, 30d back from now, or all)',
    fallback: '30d',
    fault: sinceFault,
  },
  {
    name: 'databaseVariable',
    asks: 'Which variable holds the URL of your Postgres? (unset: embedded)',
    fallback: 'DATABASE_URL',
    fault: variableFault,
  },
  {
    name: 'indexes',
    asks: `Additional indexes for reports? (${INDEXES.join(', ')}; each slows every load; empty: none)`,
    fallback: '',
    fault: someOf(INDEXES),
  },
  { name: 'lake', asks: 'Also write Parquet files? (a folder or s3://…; empty: none)', fallback: '', fault: lakeFault },
];

/** Prompts for values that no flag gave. Without a terminal, all must be flags. */
async function askFor(given: Answers, terminal: Terminal, signal: AbortSignal): Promise<Answers> {
  if (!canAsk(terminal)) {
    throw new ConfigError('there is no terminal for a prompt', {
      next: 'give --yes with --base-url and --plan; see tributary init --help',
    });
  }
  const prompt = createPrompt(signal);
  const answers: Answers = { ...given };
  try {
    for (const question of QUESTIONS) {
      if (answers[question.name] !== undefined || question.isNeeded?.(answers) === false) continue;
      answers[question.name] = await ask(question);
    }
    return answers;
  } finally {
    prompt.close();
  }

  async function ask({ name, asks, fallback, fault }: Question): Promise<string> {
    for (;;) {
      const answer = await prompt.ask(`${wrap(`${asks}${fallback ? ` [${fallback}]` : ''}`, 0, terminal.columns)}\n> `);
      const chosen = answer.trim() || fallback;
      const wrong = chosen === undefined ? 'a value is required' : fault?.(chosen);
      if (chosen !== undefined && wrong === undefined) return chosen;
      terminal.err(`${wrap(`${name}: ${wrong}`, 2, terminal.columns)}\n`);
    }
  }
}
