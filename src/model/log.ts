import { AsyncLocalStorage } from 'node:async_hooks';

/** What the house needs of a logger; pino fits it, and so does a list in a test. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

/**
 * What the house does, for those who watch: metrics and traces. The work does not know who watches; where nobody does, it
 * costs a function call. Attributes hold names, windows and counts, never a key and nothing of a record.
 */
export interface Span {
  name: 'run' | 'window' | 'request' | 'commit';
  attributes: Attributes;
  /** What it is a part of. */
  parent: Span | undefined;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanEnd {
  seconds: number;
  /** What it threw, if it did. */
  error: unknown;
}

/** Told when a span begins; what it returns is told when the span ends. */
type Observer = (span: Span) => (end: SpanEnd) => void;

const observers = new Set<Observer>();
const current = new AsyncLocalStorage<Span>();

/** Returns how to stop. */
export function observe(observer: Observer): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

/** Does the work; spans that begin inside of it are its parts. */
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
