/** How much of the budget was used. Figures that are not known yet are absent, not zero. */
export interface Usage {
  requests: number;
  /** Seconds in which at least one request waited or was under way. */
  activeSeconds: number;
  /** Requests started in that time, as a share of what the budget would have allowed. */
  share: number | undefined;
  pauses: number;
}

export interface UsageMeter {
  entered(): void;
  left(): void;
  started(): void;
  read(pauses: number): Usage;
}

export function createUsageMeter(requestsPerSecond: number): UsageMeter {
  let requests = 0;
  let present = 0;
  let since = 0;
  let activeMs = 0;
  return {
    entered() {
      if (present++ === 0) since = performance.now();
    },
    left() {
      if (--present === 0) activeMs += performance.now() - since;
    },
    started() {
      requests++;
    },
    read(pauses) {
      const activeSeconds = (activeMs + (present > 0 ? performance.now() - since : 0)) / 1000;
      // A lone request takes a moment but stands for a whole gap: short bursts of activity would show more than all.
      const share = requests > 0 ? Math.min(1, requests / (requestsPerSecond * activeSeconds)) : undefined;
      return { requests, activeSeconds, share, pauses };
    },
  };
}
