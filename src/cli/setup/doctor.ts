import { examine } from '../../app/doctor.ts';
import { environment } from '../../app/index.ts';
import { DEFAULT_CONFIG, type LoadedConfig } from '../../config/index.ts';
import { type Finding, findingOf, note, ok } from '../../model/errors.ts';
import { type Context, EXIT, type ExitCode, mostSevere, type Options, type Register, withOptions } from '../command.ts';
import { counted, createPaint, type Paint, wrap } from '../terminal.ts';

const EXAMPLES = `
Examples:
  tributary doctor
  tributary doctor --config staging.yaml --json

Checks the config, the state, each sink, the queue, each service, the disk and
Node. It changes nothing and sends each service one request. Every line is ok, a
note, or a fault with its fix. Exit codes: 0 no faults · 2 the config or a
database needs fixing · 3 the service refuses · 4 something does not answer.`;

export const registerDoctor: Register = (program, action) => {
  const command = program
    .command('doctor')
    .description('check everything a sync needs, and say what to fix')
    .addHelpText('after', EXAMPLES);
  withOptions(command, 'config', 'json').action(action(doctor));
};

async function doctor({ terminal, log, signal, document }: Context, options: Options): Promise<ExitCode> {
  const paint = createPaint(terminal);
  const onFinding = (finding: Finding): void => {
    if (!options.json) terminal.out(lineOf(finding, paint, terminal.columns));
  };
  const findings: Finding[] = [];
  const loaded = load(options.config ?? DEFAULT_CONFIG);
  for (const finding of loaded.findings) onFinding(finding);
  findings.push(...loaded.findings);
  if (loaded.config) findings.push(...(await examine({ config: loaded.config, log, signal, onFinding })));
  if (options.json) terminal.out(document({ findings }));
  else terminal.out(`\n${summary(findings)}`);
  return mostSevere(findings.map(codeOf));
}

function load(file: string): { config?: LoadedConfig['config']; findings: Finding[] } {
  try {
    const { config, warnings } = environment.config(file);
    const names = Object.keys(config.sources);
    const first =
      names.length > 0
        ? ok('config', `${file} is sound`)
        : note('config', `${file} defines no source`, 'add one under sources:, or run tributary init');
    return { config, findings: [first, ...warnings.map((warning) => note('config', warning))] };
  } catch (error) {
    return { findings: [findingOf('config', error)] };
  }
}

const MARKS = { ok: 'ok  ', note: 'note', fault: 'FAIL' } as const;

function lineOf({ level, subject, says, fix }: Finding, paint: Paint, columns: number): string {
  const colour = { ok: paint.good, note: paint.warn, fault: paint.bad }[level];
  const [first = '', ...more] = says.split('\n');
  const lines = [wrap(`${subject}: ${first}`, 6, columns), ...more.map((line) => wrap(`      ${line}`, 8, columns))];
  if (fix) lines.push(`      ${wrap(`fix: ${fix}`, 6, columns)}`);
  return `${colour(MARKS[level])}  ${lines.join('\n')}`;
}

function summary(findings: readonly Finding[]): string {
  const [faults, notes] = (['fault', 'note'] as const).map(
    (level) => findings.filter((one) => one.level === level).length,
  );
  if (!faults && !notes) return 'all is well';
  if (!faults) return `it works, with ${counted(notes ?? 0, 'note')}`;
  return `${counted(faults, 'error')} to fix: see the lines marked FAIL`;
}

function codeOf({ level, fixBy }: Finding): ExitCode {
  if (level !== 'fault') return EXIT.done;
  return fixBy === 'service' ? EXIT.refused : fixBy === 'later' ? EXIT.incomplete : EXIT.usage;
}
