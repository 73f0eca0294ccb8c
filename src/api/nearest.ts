/** The known name that a mistyped one is closest to, or undefined where none is close enough to be worth saying. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const typed = simple(name.slice(0, 100));
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(typed, simple(candidate));
    if (!best || distance < best.distance) best = { name: candidate, distance };
  }
  return best && best.distance <= Math.max(1, Math.floor(best.name.length / 2)) ? best.name : undefined;
}

/** `utmSource`, `utm-source` and `UTM_SOURCE` are one slip, not four. */
const simple = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
