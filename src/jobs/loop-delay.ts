import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How long this process was busy at a stretch: what renews a lock or a lease has to wait for as long. */
export interface LoopDelay {
  /** The longest since the last reading. */
  takeMaxMs(): number;
  stop(): void;
}

export function measureLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  return {
    takeMaxMs() {
      const max = histogram.max / 1e6;
      histogram.reset();
      return max;
    },
    stop: () => void histogram.disable(),
  };
}
