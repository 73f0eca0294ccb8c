import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE_CODES } from '../../../src/api/service-errors.ts';
import { NETWORK_MEANINGS } from '../../../src/model/io-errors.ts';

/** Every error shown to users, read from the source. */
export interface ErrorText {
  file: string;
  kind: string;
  message: string;
  kept: string | undefined;
  next: string | undefined;
}

const KINDS = ['ConfigError', 'StopStream', 'RetryLater', 'BadRecord', 'Cancelled'] as const;
const MADE = new RegExp(`\\bnew (${KINDS.join('|')})\\(`, 'g');

export function errorTexts(): ErrorText[] {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return (
    files
      .sort()
      .flatMap((file) => {
        const code = readFileSync(join('src', file), 'utf8');
        return [...code.matchAll(MADE)].map((made): ErrorText => {
          const [message = '', details = ''] = split(inside(code, made.index + made[0].length - 1));
          const fields = new Map(
            split(inside(details, 0))
              .map((field) => /^(\w+)(?::\s*(.*))?$/s.exec(field)?.slice(1, 3) as [string, string])
              .filter(Boolean),
          );
          return {
            file,
            kind: made[1] ?? '',
            message: spoken(message),
            kept: said(fields.get('kept')),
            next: said(fields.get('next')),
          };
        });
      })
      // Messages only passed on are listed where they are made.
      .filter(({ message }) => /[a-z]{2,} [a-z]/i.test(message.replace(/‹[^›]*›/g, '')))
  );
}

/** Every message by its exit code, for test/unit/error-texts.md. Each is printed with what was kept and what to do. */
export function errorsPage(texts: readonly ErrorText[]): string {
  const titles: Readonly<Record<string, string>> = {
    ConfigError: 'You are asked (exit code 2)',
    StopStream: 'The service refuses (exit code 3)',
    RetryLater: 'It may succeed later (exit code 4)',
    BadRecord: 'One record is set aside',
    Cancelled: 'Somebody stopped it (exit code 130)',
  };
  const sections = KINDS.map((kind) => {
    const messages = texts.filter((text) => text.kind === kind).map(({ message }) => message.replace(/:$/, ''));
    return wrapped(`- **${titles[kind]}**: ${[...new Set(messages)].join(' · ')}`);
  });
  return [HEAD, sections.join('\n'), NETWORK, SERVICE].join('\n\n');
}

const HEAD = `# Every message

Generated: \`npm run generate\`.

Each is printed with what was kept and what to do next, and where they are known with the source, the stream and the window before it. ‹…› is
filled in; \`|\` stands between what is said in one case and in another.`;

const entry = ({ message, kept, next }: Pick<ErrorText, 'message' | 'kept' | 'next'>): string =>
  wrapped(`- ${[message, kept && `*kept:* ${kept}`, next && `*next:* ${next}`].filter(Boolean).join(' · ')}`);

/** Broken into short lines. */
export function wrapped(text: string): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length > 160) lines.push(`  ${word}`);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}

const NETWORK = [
  'What to do where a request fails:\n',
  ...NETWORK_MEANINGS.map(({ what, next }) => entry({ message: what, kept: undefined, next })),
].join('\n');

const SERVICE = [
  'And what to do where the service answers so:\n',
  ...SERVICE_CODES.map(({ status, code, next }) => entry({ message: `${status} ${code}`, kept: undefined, next })),
].join('\n');

const said = (expression: string | undefined): string | undefined => (expression ? spoken(expression) : undefined);

/** The text of an expression, with ‹names› for its values. */
function spoken(expression: string): string {
  const texts: string[] = [];
  for (let at = 0; at < expression.length; at++) {
    const quote = expression[at] ?? '';
    if (!QUOTES.includes(quote)) continue;
    const end = endOfText(expression, at);
    texts.push(quote === '`' ? filledIn(expression.slice(at + 1, end)) : unescaped(expression.slice(at + 1, end)));
    at = end;
  }
  const whole = texts.filter((text) => text.trim() !== '').join(' | ');
  return (whole || `‹${expression.trim()}›`).replace(/\s+/g, ' ');
}

/** A value is shown by its last name, or by the texts that it selects from. */
function filledIn(template: string): string {
  let text = '';
  for (let at = 0; at < template.length; at++) {
    if (!template.startsWith('${', at)) {
      text += template[at];
      continue;
    }
    const end = endOfGroup(template, at + 1);
    const inner = template.slice(at + 2, end);
    text += /['"`][^'"`]*[a-z]{3}/.test(inner) ? `‹${spoken(inner)}›` : `‹${nameOf(inner)}›`;
    at = end;
  }
  return unescaped(text);
}

/** `names.join(', ')` is names, `toIso(cursor.since)` is since. */
function nameOf(expression: string): string {
  const bare = expression.replace(/\.(?:join|toISOString|slice)\([^()]*\)/g, '').replace(/^\w+\((.*)\)$/s, '$1');
  return /^[\w.?]*?(\w+)(?:, .*)?$/s.exec(bare.trim())?.[1] ?? '…';
}

const unescaped = (text: string): string =>
  text.replaceAll('\\`', '`').replaceAll("\\'", "'").replaceAll('\\\\', '\\').replaceAll('\\n', ' ');

const QUOTES = '\'"`';
const OPEN = '([{';
const CLOSE = ')]}';

/** The text between brackets. */
const inside = (code: string, open: number): string => (code ? code.slice(open + 1, endOfGroup(code, open)) : '');

function endOfGroup(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    const c = code[at] ?? '';
    if (QUOTES.includes(c)) at = endOfText(code, at);
    else if (OPEN.includes(c)) depth++;
    else if (CLOSE.includes(c) && --depth === 0) return at;
  }
  return code.length;
}

function endOfText(code: string, start: number): number {
  for (let at = start + 1; at < code.length; at++) {
    if (code[at] === '\\') at++;
    else if (code[start] === '`' && code.startsWith('${', at)) at = endOfGroup(code, at + 1);
    else if (code[at] === code[start]) return at;
  }
  return code.length;
}

/** Splits at the commas of the outermost level. */
function split(code: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at < code.length; at++) {
    const c = code[at] ?? '';
    if (QUOTES.includes(c)) at = endOfText(code, at);
    else if (OPEN.includes(c)) at = endOfGroup(code, at);
    else if (c === ',') {
      parts.push(code.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, code.slice(start)].map((part) => part.trim()).filter(Boolean);
}
