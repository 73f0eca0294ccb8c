import { onAbort } from '../api/cancel.ts';

/**
 * A signal that follows several others until it is let go. Not AbortSignal.any: that would leave something behind on the signal of
 * the process with every run.
 */
export function eitherSignal(...signals: readonly AbortSignal[]): { signal: AbortSignal; letGo(): void } {
  const controller = new AbortController();
  const stops = signals.map((each) => onAbort(each, () => controller.abort(each.reason)));
  for (const each of signals) if (each.aborted) controller.abort(each.reason);
  return { signal: controller.signal, letGo: () => stops.forEach((stop) => void stop()) };
}
