import { AsyncLocalStorage } from 'node:async_hooks';

/** The logger that Tributary needs: pino fits, and so does a list in a test. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

/** For metrics and traces. Without observers it costs one call. Attributes hold names, windows and counts, no keys. */
export interface Span {
  name: 'run' | 'window' | 'request' | 'commit';
  /** Some are final only when the span ends: read them again then. */
  attributes: Attributes;
  parent: Span | undefined;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanEnd {
  seconds: number;
  error: unknown;
}

/** Called when a span begins; the function it returns is called when the span ends. */
type Observer = (span: Span) => (end: SpanEnd) => void;

const observers = new Set<Observer>();
const current = new AsyncLocalStorage<Span>();

export function observe(observer: Observer): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

export async function observed<T>(name: Span['name'], attributes: Attributes, work: () => Promise<T>): Promise<T> {
  if (observers.size === 0) return work();
  const span: Span = { name, attributes, parent: current.getStore() };
  const began = performance.now();
  const ends = [...observers].map((observer) => observer(span));
  let error: unknown;
  try {
    return await current.run(span, work);
  } catch (thrown) {
    error = thrown;
    throw thrown;
  } finally {
    const end = { seconds: (performance.now() - began) / 1000, error };
    for (const onEnd of ends) onEnd(end);
  }
}

export function runOf(span: Span | undefined): string | undefined {
  if (span === undefined || span.name === 'run') return span && String(span.attributes.run);
  return runOf(span.parent);
}

/** A line logged inside a span, whether or not the log's level lets it through. */
export interface Line {
  level: 'debug' | 'info' | 'warn' | 'error';
  fields: object;
  message: string;
  span: Span;
}

const listeners = new Set<(line: Line) => void>();

export function listen(listener: (line: Line) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function heard(log: Log, place: object = {}): Log {
  const say =
    (level: Line['level']) =>
    (fields: object, message: string): void => {
      log[level](fields, message);
      const span = current.getStore();
      if (span) for (const listener of listeners) listener({ level, fields: { ...place, ...fields }, message, span });
    };
  return {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    child: (fields) => heard(log.child(fields), { ...place, ...fields }),
  };
}

/** Fields with these names hold secrets: log lines omit them. */
export const SECRET_FIELDS = ['apiKey', 'authorization', 'password', 'salt', 'token', 'url'] as const;
