import {
  type Document,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  stringify,
  visit,
  type YAMLError,
} from 'yaml';

interface DocumentFault {
  offset: number;
  message: string;
  /** The environment variable that is not set, if that is the fault. */
  variable?: string;
  key?: string | undefined;
  /** `form`: invalid YAML, so the content cannot be checked. */
  kind: 'form' | 'value';
}

export const writeYaml = (value: unknown): string => stringify(value, { lineWidth: 100 }).trimEnd();

type Path = ReadonlyArray<string | number>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Far more than a config needs, and far less than it takes to exhaust the parser's stack. */
const MOST_CHARACTERS = 262_144;
const MOST_NESTING = 100;

/** The only user of `yaml`: a config file as plain data, with the line and column of every key. */
export function readDocument(text: string, env: Environment) {
  const lines = new LineCounter();
  const faults: DocumentFault[] = [];
  const excess = sizeFault(text);
  const options = { lineCounter: lines, prettyErrors: false, logLevel: 'error', stringKeys: true } as const;
  const document: Document = parseDocument(excess ? '' : text, options);
  if (excess) faults.push({ offset: 0, message: excess, kind: 'form' });
  // The parser only warns about an unknown tag: `!env NAME` would become the text NAME.
  for (const error of [...document.errors, ...document.warnings]) {
    faults.push({ offset: error.pos[0], message: messageFor(error), kind: 'form' });
  }
  const unfilled = new Set<unknown>();
  const report: Report = (node, message, kind, unset) => {
    const offset = Array.isArray(node.range) ? Number(node.range[0]) : 0;
    faults.push({ offset, message, kind, ...unset });
    if (kind === 'value') unfilled.add(node);
  };
  if (faults.length === 0) fillIn(document, env, report);
  return {
    /** The data, with environment variables filled in; undefined after a fault of kind `form`. */
    value: faults.some(({ kind }) => kind === 'form') ? undefined : toData(document, report),
    faults,
    /** The position of a key, or of its nearest existing parent. */
    offsetOf: (path: Path) => offsetOf(document, path),
    /** Whether the value's environment variable is not set, so that it cannot be checked further. */
    isUnfilled: (path: Path) => unfilled.has(document.getIn(path, true)),
    placeOf: (offset: number) => {
      // An empty file has no line yet.
      const { line, col } = lines.linePos(offset);
      return { line: Math.max(1, line), col: Math.max(1, col) };
    },
  };
}

/** Checked before parsing: deep nesting would overflow the parser's stack, which cannot be caught. */
function sizeFault(text: string): string | undefined {
  if (text.length > MOST_CHARACTERS) return 'the file is too large for a config';
  let depth = 0;
  for (const [mark] of text.matchAll(/[[{\]}]|(?:[-?:]\s+){100}/g)) {
    depth += mark === ']' || mark === '}' ? -1 : mark.length;
    if (depth > MOST_NESTING) return 'the file is nested too deeply for a config';
  }
  return undefined;
}

const NO_ALIAS = 'not an alias: put a value that begins with * in quotes';
const NO_TAGS = 'YAML tags are not supported: put a value that begins with ! in quotes';

/** Replaces the parser's messages that quote the text at fault, which may be a secret. */
const MESSAGES: Partial<Record<YAMLError['code'], string>> = {
  TAB_AS_INDENT: 'is indented with a tab: use spaces',
  DUPLICATE_KEY: 'this key is a duplicate: keep one of the two',
  NON_STRING_KEY: 'a key must be a plain word',
  MULTIPLE_DOCS: 'a second document starts here (---): a config is a single document',
  BAD_SCALAR_START: 'a value cannot begin with this character: put it in quotes',
  BAD_DQ_ESCAPE: 'not an escape sequence: in double quotes write \\\\ for a backslash, or use single quotes',
  BAD_ALIAS: NO_ALIAS,
  TAG_RESOLVE_FAILED: NO_TAGS,
  BAD_COLLECTION_TYPE: NO_TAGS,
};
const QUOTES_NOTHING: readonly string[] = ['MISSING_CHAR', 'BAD_INDENT', 'MULTILINE_IMPLICIT_KEY', 'BLOCK_IN_FLOW'];

function messageFor({ code, message }: YAMLError): string {
  if (QUOTES_NOTHING.includes(code)) return message;
  return MESSAGES[code] ?? 'this does not belong here: a colon, comma, bracket or quote may be missing before it';
}

type Report = (
  node: { range?: unknown },
  message: string,
  kind: DocumentFault['kind'],
  unset?: Pick<DocumentFault, 'variable' | 'key'>,
) => void;

/** `${NAME}` or `${NAME:-default}`, and anything else that starts like one. */
const VARIABLE = /\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\})?/g;

/** Fills in `${NAME}` after parsing, so that the environment's text can never become YAML syntax. */
function fillIn(document: Document, env: Environment, report: Report): void {
  visit(document, {
    Alias(_key, node) {
      if (!node.resolve(document)) report(node, NO_ALIAS, 'form');
    },
    Collection(_key, node) {
      if (node.tag) report(node, NO_TAGS, 'form');
    },
    Scalar(key, node, path) {
      if (node.tag) report(node, NO_TAGS, 'form');
      if (typeof node.value !== 'string') return;
      if (key === 'key') checkKey(node, report);
      else node.value = filledIn(node, node.value, env, { report, key: keyOf(path.at(-1)) });
    },
  });
}

function checkKey(node: Scalar, report: Report): void {
  const name = String(node.value);
  if (name.includes('${')) report(node, 'environment variables can be used in values, not in keys', 'form');
  // In a plain object, this key would vanish instead of being refused.
  if (name === '__proto__') report(node, '__proto__: is not a key of the config', 'form');
}

const keyOf = (parent: unknown): string | undefined =>
  isPair(parent) && isScalar(parent.key) ? String(parent.key.value) : undefined;

function filledIn(
  node: Scalar,
  text: string,
  env: Environment,
  { report, key }: { report: Report; key: string | undefined },
): string {
  return text.replace(VARIABLE, (whole, variable: string | undefined, fallback: string | undefined) => {
    if (variable === undefined) {
      report(node, `write a variable as \${NAME} or \${NAME:-default}, in letters, digits and _`, 'value');
      return whole;
    }
    const value = (Object.hasOwn(env, variable) && env[variable]) || fallback;
    if (value === undefined)
      report(node, `the environment variable ${variable} is not set, or empty`, 'value', { variable, key });
    return value ?? whole;
  });
}

function toData(document: Document, report: Report): unknown {
  try {
    return document.toJS();
  } catch {
    // Recovery: reported as a fault. Aliases of aliases can expand to millions of values, which the parser refuses.
    report({}, 'the aliases (*) expand to too many values', 'form');
    return undefined;
  }
}

function offsetOf(document: Document, path: Path): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const name of path) {
    const next = isCollection(node) ? childOf(node as Node, name) : undefined;
    if (!next) break;
    offset = startOf(next.mark) ?? offset;
    node = next.value;
  }
  return offset;
}

/** `mark` is the node whose position a fault shows: the key in a mapping, the item in a list. */
function childOf(node: Node, name: string | number): { mark: unknown; value: unknown } | undefined {
  if (isSeq(node)) return { mark: node.items[Number(name)], value: node.items[Number(name)] };
  if (!isMap(node)) return undefined;
  const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(name));
  return pair && { mark: pair.key, value: pair.value };
}

const startOf = (node: unknown): number | undefined =>
  typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)
    ? Number(node.range[0])
    : undefined;
