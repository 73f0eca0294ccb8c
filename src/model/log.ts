import { AsyncLocalStorage } from 'node:async_hooks';

/** The logger that Tributary needs: pino fits, and so does a list in a test. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

/**
 * Spans of work, for metrics and traces. The work does not know its observers; without any, a span
 * costs a function call. Attributes hold names, windows and counts, never a key and nothing of a record.
 */
export interface Span {
  name: 'run' | 'window' | 'request' | 'commit';
  /** Some are known for certain only when it ends: read them then, too. */
  attributes: Attributes;
  /** The span that this one is part of. */
  parent: Span | undefined;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanEnd {
  seconds: number;
  /** The error that it threw, if any. */
  error: unknown;
}

/** Called when a span begins; the function it returns is called when the span ends. */
type Observer = (span: Span) => (end: SpanEnd) => void;

const observers = new Set<Observer>();
const current = new AsyncLocalStorage<Span>();

/** Returns the function that unsubscribes. */
export function observe(observer: Observer): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

/** Runs the work as a span; spans that begin inside it become its children. */
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
    for (const tell of ends) tell(end);
  }
}
