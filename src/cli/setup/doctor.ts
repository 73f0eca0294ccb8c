import { examine } from '../../app/doctor.ts';
import { environment } from '../../app/index.ts';
import { type Config, DEFAULT_CONFIG } from '../../config/index.ts';
import { type Finding, findingOf, note, ok } from '../../model/errors.ts';
import { type Context, command, EXIT, type ExitCode, mostSevere, type Options } from '../command.ts';
import { counted, type Terminal, wrap } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary doctor
  tributary doctor --config staging.yaml --json

Checks the config, the state, each sink, the queue, each service, the disk and
Node. It changes nothing and sends each service one request. Every line is ok, a
note, or a fault with its fix. Exit codes: 0 no faults · 2 the config or a
database needs fixing · 3 the service refuses · 4 something does not answer.`;

export const registerDoctor = command('doctor', {
  does: 'check everything a sync needs, and report what to fix',
  options: ['config', 'json'],
  more: EXAMPLES,
  run: doctor,
});

async function doctor({ terminal, log, signal, document }: Context, options: Options): Promise<ExitCode> {
  const findings: Finding[] = [];
  const onFinding = (finding: Finding): void => {
    findings.push(finding);
    if (!options.json) terminal.out(lineOf(finding, terminal));
  };
  const config = load(options.config ?? DEFAULT_CONFIG, onFinding);
  if (config) await examine({ config, log, signal, onFinding });
  if (options.json) terminal.out(document({ findings }));
  else terminal.out(`\n${summary(findings)}`);
  return mostSevere(findings.map(codeOf));
}

function load(file: string, onFinding: (finding: Finding) => void): Config | undefined {
  try {
    const { config, warnings } = environment.config(file);
    for (const finding of [ok('config', `${file} is valid`), ...warnings.map((warning) => note('config', warning))])
      onFinding(finding);
    return config;
  } catch (error) {
    onFinding(findingOf('config', error));
    return undefined;
  }
}

const MARKS = { ok: [32, 'ok  '], note: [33, 'note'], fault: [31, 'FAIL'] } as const;

function lineOf({ level, subject, says, fix }: Finding, { isScreen, columns }: Terminal): string {
  const [colour, mark] = MARKS[level];
  const [first = '', ...more] = says.split('\n');
  const lines = [wrap(`${subject}: ${first}`, 6, columns), ...more.map((line) => wrap(`      ${line}`, 8, columns))];
  if (fix) lines.push(`      ${wrap(`fix: ${fix}`, 6, columns)}`);
  return `${isScreen ? `\x1b[${colour}m${mark}\x1b[0m` : mark}  ${lines.join('\n')}`;
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
