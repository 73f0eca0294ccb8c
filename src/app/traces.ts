import { context, type Span as OtelSpan, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { isDoneWithin } from '../api/cancel.ts';
import { observe, type Span } from '../model/log.ts';

/** How long a collector has to answer, retries included: a finished command must not wait for a dead collector. */
const WAIT_MS = 2000;

/**
 * The only user of OpenTelemetry: sends spans as traces. Target and sampling are set by its own
 * environment variables; loaded only if they are set. Returns the function that flushes and stops.
 */
export function startTraces({ service, version }: { service: string; version: string }): () => Promise<void> {
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ timeoutMillis: WAIT_MS }))],
  });
  const tracer = provider.getTracer('tributary');
  const open = new WeakMap<Span, OtelSpan>();

  const stop = observe((span) => {
    const parent = span.parent && open.get(span.parent);
    const under = parent ? trace.setSpan(context.active(), parent) : context.active();
    const kind = span.name === 'request' ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const own = tracer.startSpan(span.name, { kind, attributes: named(span) }, under);
    open.set(span, own);
    return ({ error }) => {
      own.setAttributes(named(span));
      // The error's class, not its message, which may quote the service.
      if (error !== undefined) {
        own.setStatus({ code: SpanStatusCode.ERROR });
        own.setAttribute('error.type', error instanceof Error ? error.name : 'unknown');
      }
      own.end();
    };
  });

  return async () => {
    stop();
    const sent = provider.shutdown().catch(() => {});
    // Recovery: without a collector the traces are lost, and the command ends a moment later.
    await isDoneWithin(WAIT_MS, sent);
  };
}

const named = ({ attributes }: Span): Record<string, string | number | boolean> =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`tributary.${name}`, value]));
